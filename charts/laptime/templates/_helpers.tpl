{{/*
Names are fixed, not made from the release: there is one Laptime per cluster, and the command that
allows runs in a namespace names the ClusterRole and the ServiceAccount.
*/}}
{{- define "laptime.operator" -}}laptime-operator{{- end }}
{{- define "laptime.runsRole" -}}laptime-runs{{- end }}

{{- define "laptime.selectorLabels" -}}
app.kubernetes.io/name: laptime
app.kubernetes.io/component: operator
{{- end }}

{{- define "laptime.labels" -}}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version | replace "+" "_" }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
{{ include "laptime.podLabels" . }}
{{- end }}

{{/*
Those of pods have no version: a new one alone would make a new pod, and what Prometheus has in an
emptyDir would be lost in the middle of a run. What a pod is made of says whether it has to be new.
*/}}
{{- define "laptime.podLabels" -}}
app.kubernetes.io/name: laptime
app.kubernetes.io/instance: {{ .Release.Name }}
app.kubernetes.io/part-of: laptime
app.kubernetes.io/managed-by: {{ .Release.Service }}
{{- end }}

{{/*
A whole image reference. Takes a list: the root context, the image's values.
*/}}
{{- define "laptime.image" -}}
{{- $root := index . 0 -}}
{{- $image := index . 1 -}}
{{- $registry := $image.registry | default $root.Values.images.registry -}}
{{- $tag := $image.tag | default $root.Values.images.tag | default $root.Chart.AppVersion -}}
{{- if $registry }}{{ $registry }}/{{ end }}{{ $image.repository }}
{{- if $image.digest }}@{{ $image.digest }}{{ else }}:{{ $tag }}{{ end }}
{{- end }}

{{/*
The images of runs, as the operator reads them.
*/}}
{{- define "laptime.imageSet" -}}
{{- $root := . -}}
{{- $images := .Values.images -}}
{{- $servers := dict -}}
{{- range $preset, $image := $images.servers -}}
{{- $_ := set $servers $preset (include "laptime.image" (list $root $image)) -}}
{{- end -}}
{{- $set := dict "servers" $servers "pullPolicy" $images.pullPolicy "pullSecrets" $images.pullSecrets -}}
{{- range $name := list "operator" "postgres" "pgbouncer" "haproxy" "generator" "upstream" "delay" -}}
{{- $_ := set $set $name (include "laptime.image" (list $root (get $images $name))) -}}
{{- end -}}
{{- if and .Values.watching.exporters (include "laptime.prometheusUrl" .) -}}
{{- $_ := set $set "exporter" (include "laptime.image" (list $root $images.exporter)) -}}
{{- end -}}
{{- $set | toPrettyJson -}}
{{- end }}

{{/*
What the Pod Security level `restricted` asks of a container, and a read-only root file system.
*/}}
{{- define "laptime.containerSecurity" -}}
allowPrivilegeEscalation: false
readOnlyRootFilesystem: true
capabilities:
  drop: [ALL]
{{- end }}

{{/*
"true" where the cluster chooses which users pods run as, as OpenShift does, and refuses pods that
say one themselves.
*/}}
{{- define "laptime.foreignUsers" -}}
{{- $said := dig "compatibility" "openshift" "adaptSecurityContext" "auto" (.Values.global | default dict) -}}
{{- if or (eq $said "force") (and (eq $said "auto") (.Capabilities.APIVersions.Has "security.openshift.io/v1")) -}}
true
{{- end -}}
{{- end }}

{{/*
What the level asks of a pod. Takes a dict: root, and user or volumes where it has a user of its own
or volumes that this user writes.
*/}}
{{- define "laptime.podSecurity" -}}
runAsNonRoot: true
{{- if not (include "laptime.foreignUsers" .root) }}
{{- $user := .user | default 10001 }}
runAsUser: {{ $user }}
runAsGroup: {{ $user }}
{{- if .volumes }}
fsGroup: {{ $user }}
{{- end }}
{{- end }}
seccompProfile:
  type: RuntimeDefault
{{- end }}

{{/*
A text as the value of an environment variable that has it as it is: Kubernetes puts variables in the
place of $(NAME), and one $ in that of two.
*/}}
{{- define "laptime.literal" -}}{{ . | replace "$" "$$" | quote }}{{- end }}

{{/*
What pods of runs may reach and be reached from, as the operator reads it.
*/}}
{{- define "laptime.network" -}}
{{- $watchers := list -}}
{{- with include "laptime.prometheusUrl" . -}}
{{- $watchers = append $watchers $.Release.Namespace -}}
{{- $host := (urlParse .).host | splitList ":" | first | splitList "." -}}
{{- /* Service.namespace.svc..., or the short form of it. */ -}}
{{- if or (eq (len $host) 2) (and (gt (len $host) 2) (eq (index $host 2) "svc")) -}}
{{- $watchers = append $watchers (index $host 1) -}}
{{- end -}}
{{- end -}}
{{- dict "dns" .Values.networkPolicy.runs.dns "watchers" (concat $watchers .Values.networkPolicy.runs.watchers | uniq) | toJson -}}
{{- end }}
