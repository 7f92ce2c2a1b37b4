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

{{- define "laptime.grafanaDatasources" -}}
apiVersion: 1
datasources:
  - name: Laptime
    uid: laptime-prometheus
    type: prometheus
    access: proxy
    url: {{ include "laptime.prometheusUrl" . }}
    isDefault: true
    editable: false
    jsonData:
      httpMethod: POST
      prometheusType: Prometheus
      timeInterval: {{ .Values.prometheus.scrapeInterval }}
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
