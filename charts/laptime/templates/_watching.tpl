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
The namespaces with runs to watch, as JSON; ["*"] for all.
*/}}
{{- define "laptime.watchedNamespaces" -}}
{{- $namespaces := .Values.watching.namespaces | default .Values.runNamespaces -}}
{{- if has "*" $namespaces }}{{ list "*" | toJson }}{{ else }}{{ $namespaces | toJson }}{{ end -}}
{{- end }}

{{/*
Where the operator asks for figures; empty when there is no Prometheus.
*/}}
{{- define "laptime.prometheusUrl" -}}
{{- if .Values.prometheus.url }}{{ .Values.prometheus.url | trimSuffix "/" }}
{{- else if .Values.prometheus.enabled -}}
http://{{ include "laptime.prometheus" . }}.{{ .Release.Namespace }}.svc.{{ .Values.operator.clusterDomain }}:9090
{{- end }}
{{- end }}

{{/*
nodeSelector, affinity, tolerations and priorityClassName of a pod. Takes its values.
*/}}
{{- define "laptime.placement" -}}
{{- with .priorityClassName }}
priorityClassName: {{ . }}
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
  namespace: {{ . }}
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
    namespace: {{ $root.Release.Namespace }}
{{- end }}
{{- end }}

{{- define "laptime.monitorLabels" -}}
{{- include "laptime.labels" . }}
app.kubernetes.io/component: monitor
{{- with .Values.monitors.labels }}
{{ toYaml . }}
{{- end }}
{{- end }}
