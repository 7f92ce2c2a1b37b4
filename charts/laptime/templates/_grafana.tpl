{{/*
Grafana: names, selector, and what it is provisioned with.
*/}}
{{- define "laptime.grafana" -}}laptime-grafana{{- end }}

{{- define "laptime.grafanaSelectorLabels" -}}
app.kubernetes.io/name: laptime
app.kubernetes.io/component: grafana
{{- end }}

{{- define "laptime.grafanaSecret" -}}
{{- .Values.grafana.admin.existingSecret | default (include "laptime.grafana" .) -}}
{{- end }}

{{/*
The name of a dashboard's ConfigMap. Takes the path of its file.
*/}}
{{- define "laptime.dashboardName" -}}
{{- base . | trimSuffix ".json" | printf "%s-dashboard" -}}
{{- end }}

{{/*
The name of the ConfigMap by which the chart's own Grafana has it.
*/}}
{{- define "laptime.grafanaDashboard" -}}
{{- base . | trimSuffix ".json" | trimPrefix "laptime-" | printf "laptime-grafana-%s" -}}
{{- end }}

{{- define "laptime.grafanaDatasources" -}}
apiVersion: 1
datasources:
  - name: Laptime
    uid: laptime-prometheus
    type: prometheus
    access: proxy
    {{- /* Grafana puts variables in the place of what begins with a $. */}}
    url: {{ include "laptime.prometheusUrl" . | include "laptime.literal" }}
    isDefault: true
    editable: false
    jsonData:
      httpMethod: POST
      prometheusType: Prometheus
      timeInterval: {{ .Values.prometheus.scrapeInterval }}
{{- $prometheus := .Values.prometheus }}
{{- $files := include "laptime.prometheusFiles" . }}
{{- $secure := dict }}
{{- if or $prometheus.tls.configMap $prometheus.tls.secret }}
      tlsAuthWithCACert: true
{{- $_ := set $secure "tlsCACert" (printf "$__file{%s/ca.crt}" $files) }}
{{- end }}
{{- $headers := dict }}
{{- range $name, $value := $prometheus.headers }}
{{- $_ := set $headers $name ($value | replace "$" "$$") }}
{{- end }}
{{- if eq $prometheus.auth.type "bearer" }}
{{- $_ := set $headers "Authorization" (printf "Bearer $__file{%s/token}" $files) }}
{{- end }}
{{- /* To pack an answer takes more CPU than to find it, and the chart's Prometheus works beside runs. */}}
{{- if $prometheus.enabled }}
{{- $_ := set $headers "Accept-Encoding" "identity" }}
{{- end }}
{{- range $at, $name := keys $headers | sortAlpha }}
      httpHeaderName{{ add1 $at }}: {{ $name | quote }}
{{- $_ := set $secure (printf "httpHeaderValue%d" (add1 $at)) (get $headers $name) }}
{{- end }}
{{- if eq $prometheus.auth.type "basic" }}
    basicAuth: true
    basicAuthUser: $__file{ {{- $files -}} /username}
{{- $_ := set $secure "basicAuthPassword" (printf "$__file{%s/password}" $files) }}
{{- end }}
{{- with $secure }}
    secureJsonData:
      {{- toYaml . | nindent 6 }}
{{- end }}
{{- end }}

{{- define "laptime.grafanaProviders" -}}
apiVersion: 1
providers:
  - name: laptime
    folder: {{ .Values.grafana.dashboards.folder | quote }}
    type: file
    disableDeletion: true
    allowUiUpdates: false
    options:
      path: /etc/grafana/dashboards
{{- end }}
