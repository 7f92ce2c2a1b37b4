{{/*
Agent and Prometheus: names, selectors, and the namespaces that they look into.
*/}}
{{- define "laptime.agent" -}}laptime-agent{{- end }}
{{- define "laptime.prometheus" -}}laptime-prometheus{{- end }}
{{- define "laptime.watchRole" -}}laptime-watch{{- end }}

{{- define "laptime.agentSelectorLabels" -}}
app.kubernetes.io/name: laptime
app.kubernetes.io/component: agent
{{- end }}

{{- define "laptime.prometheusSelectorLabels" -}}
app.kubernetes.io/name: laptime
app.kubernetes.io/component: prometheus
{{- end }}

{{/*
The namespaces with runs to watch, as JSON; ["*"] for all. Those in which the chart itself allows runs are
among them: whoever names one more means that one too. Not so where that is all: who names some then does
not want agents everywhere.
*/}}
{{- define "laptime.watchedNamespaces" -}}
{{- $namespaces := .Values.watching.namespaces | default list -}}
{{- if not (and $namespaces (has "*" .Values.runNamespaces)) -}}
{{- $namespaces = concat .Values.runNamespaces $namespaces | uniq -}}
{{- end -}}
{{- if has "*" $namespaces }}{{ list "*" | toJson }}{{ else }}{{ $namespaces | toJson }}{{ end -}}
{{- end }}

{{/*
How many bytes a quantity is.
*/}}
{{- define "laptime.bytes" -}}
{{- $text := toString . -}}
{{- $suffix := regexFind "[A-Za-z]*$" $text -}}
{{- $of := dict "" 1.0 "m" 0.001 "k" 1e3 "M" 1e6 "G" 1e9 "T" 1e12 "Ki" 1024.0 "Mi" 1048576.0 "Gi" 1073741824.0 "Ti" 1099511627776.0 -}}
{{- mulf (trimSuffix $suffix $text | float64) (get $of $suffix) | printf "%.0f" -}}
{{- end }}

{{/*
Where the operator asks for figures; empty when there is no Prometheus.
*/}}
{{- define "laptime.prometheusUrl" -}}
{{- if .Values.prometheus.url }}{{ .Values.prometheus.url | trimSuffix "/" }}
{{- else if .Values.prometheus.enabled -}}
http://{{ include "laptime.prometheus" . }}.{{ .Release.Namespace }}.svc{{ with .Values.operator.clusterDomain }}.{{ . }}{{ end }}:9090
{{- end }}
{{- end }}

{{/*
How that one is asked: auth, tls, headers and matchers as the operator reads them; empty when there is nothing to
say. What contradicts itself fails here, without showing what may be secret.
*/}}
{{- define "laptime.prometheusAccess" -}}
{{- $prometheus := .Values.prometheus -}}
{{- $auth := $prometheus.auth -}}
{{- $tls := $prometheus.tls -}}
{{- if regexMatch "^https?://[^/?#]*@" $prometheus.url -}}
{{- fail "prometheus.url has credentials in it, which would be shown wherever it is: put username and password into a Secret, and name it in prometheus.auth" -}}
{{- end -}}
{{- if regexMatch "[?#]" $prometheus.url -}}
{{- fail "prometheus.url has a ? or a #: write the address before /api/v1 alone, such as https://mimir.example/prometheus" -}}
{{- end -}}
{{- if and $tls.configMap $tls.secret -}}
{{- fail "prometheus.tls: write a configMap or a secret, not both" -}}
{{- end -}}
{{- $certificates := or $tls.configMap $tls.secret -}}
{{- $named := has $auth.type (list "basic" "bearer") -}}
{{- if and $named (not $auth.existingSecret) -}}
{{- fail (printf "prometheus.auth.type is %s: name the Secret with %s in prometheus.auth.existingSecret" $auth.type (eq $auth.type "basic" | ternary "username and password" "the token")) -}}
{{- end -}}
{{- if and $auth.existingSecret (not $named) -}}
{{- fail "prometheus.auth.existingSecret is for the types basic and bearer: write one of them in prometheus.auth.type, or leave the Secret out" -}}
{{- end -}}
{{- if and $auth.audience (ne $auth.type "serviceAccount") -}}
{{- fail "prometheus.auth.audience is for the type serviceAccount: other tokens have theirs" -}}
{{- end -}}
{{- range $name, $_ := $prometheus.headers -}}
{{- if has (lower $name) (list "authorization" "content-length" "content-type" "host" "transfer-encoding") -}}
{{- fail (printf "prometheus.headers: %s cannot be written there; credentials belong in a Secret, which prometheus.auth names" $name) -}}
{{- end -}}
{{- end -}}
{{- if or $auth.type $certificates $prometheus.headers $prometheus.matchers -}}
{{- if not $prometheus.url -}}
{{- fail "prometheus.auth, prometheus.tls, prometheus.headers and prometheus.matchers are for a Prometheus of your own: write its address in prometheus.url" -}}
{{- end -}}
{{- if and $auth.type (not (hasPrefix "https:" $prometheus.url)) -}}
{{- fail "prometheus.url begins with http://, by which everybody on the way can read the credentials of prometheus.auth: write an https:// address" -}}
{{- end -}}
{{- if and $certificates (not (hasPrefix "https:" $prometheus.url)) -}}
{{- fail "prometheus.tls is for an https:// address, and prometheus.url begins with http://" -}}
{{- end -}}
{{- dict "auth" $auth "tls" $tls "headers" $prometheus.headers "matchers" $prometheus.matchers | toJson -}}
{{- end -}}
{{- end }}

{{- define "laptime.prometheusFiles" -}}/var/run/secrets/laptime.dev/prometheus{{- end }}

{{/*
What it is asked with, as the sources of a projected volume; empty when there is none. Takes a dict: the
root context, and whether a pod starts before they are there.
*/}}
{{- define "laptime.prometheusSources" -}}
{{- $prometheus := .root.Values.prometheus -}}
{{- with $prometheus.auth -}}
{{- if .existingSecret }}
- secret:
    name: {{ .existingSecret | quote }}
    optional: {{ $.optional }}
    items:
      {{- range eq .type "basic" | ternary (list "username" "password") (list "token") }}
      - {key: {{ . }}, path: {{ . }}}
      {{- end }}
{{- end }}
{{- if eq .type "serviceAccount" }}
- serviceAccountToken:
    path: token
    {{- with .audience }}
    audience: {{ . | quote }}
    {{- end }}
{{- end }}
{{- end }}
{{- with $prometheus.tls }}
{{- if or .configMap .secret }}
- {{ empty .configMap | ternary "secret" "configMap" }}:
    name: {{ .configMap | default .secret | quote }}
    optional: {{ $.optional }}
    items:
      - {key: {{ .key }}, path: ca.crt}
{{- end }}
{{- end }}
{{- end }}

{{/*
nodeSelector, affinity, tolerations and priorityClassName of a pod. Takes its values.
*/}}
{{- define "laptime.placement" -}}
{{- with .priorityClassName }}
priorityClassName: {{ . | quote }}
{{- end }}
{{- with .nodeSelector }}
nodeSelector:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .affinity }}
affinity:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .tolerations }}
tolerations:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- end }}

{{/*
Bindings of the role laptime-watch for one account. Takes a list: the root context, the account.
*/}}
{{- define "laptime.watchBindings" -}}
{{- $root := index . 0 -}}
{{- $account := index . 1 -}}
{{- $namespaces := include "laptime.watchedNamespaces" $root | fromJsonArray -}}
{{- range $namespaces }}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: {{ eq . "*" | ternary "ClusterRoleBinding" "RoleBinding" }}
metadata:
  name: {{ $account }}
  {{- if ne . "*" }}
  namespace: {{ . | quote }}
  {{- end }}
  labels:
    {{- include "laptime.labels" $root | nindent 4 }}
roleRef:
  apiGroup: rbac.authorization.k8s.io
  kind: ClusterRole
  name: {{ include "laptime.watchRole" $root }}
subjects:
  - kind: ServiceAccount
    name: {{ $account }}
    namespace: {{ $root.Release.Namespace | quote }}
{{- end }}
{{- end }}

{{- define "laptime.monitorLabels" -}}
{{- include "laptime.labels" . }}
app.kubernetes.io/component: monitor
{{- with .Values.monitors.labels }}
{{ toYaml . }}
{{- end }}
{{- end }}
