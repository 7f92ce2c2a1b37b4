{{/*
The service discovery of one kind of pod. Takes a dict: namespaces (a list; "*" is all) and selector (of labels).
*/}}
{{- define "laptime.discovery" -}}
kubernetes_sd_configs:
  - role: pod
    selectors:
      - role: pod
        label: {{ .selector | quote }}
    {{- if not (has "*" .namespaces) }}
    namespaces:
      names: {{ .namespaces | toJson }}
    {{- end }}
{{- end }}

{{/*
The author of a run is not trusted: a pod of his may say anything, but not without an end, and send
Prometheus nowhere, which may get where his pods may not.
*/}}
{{- define "laptime.runLimits" -}}
follow_redirects: false
body_size_limit: 2MB
sample_limit: 2000
label_limit: 40
label_name_length_limit: 100
label_value_length_limit: 500
{{- end }}

{{/*
What every scrape of a run's pod shares: the pod's labels under the agent's names for them. A pod that lacks one of those
that all pods of runs have could say it itself, since it has no label that this would stand against.
*/}}
{{- define "laptime.runRelabeling" -}}
- source_labels: [__meta_kubernetes_pod_label_laptime_dev_run, __meta_kubernetes_pod_label_laptime_dev_run_uid, __meta_kubernetes_pod_label_laptime_dev_component]
  regex: .+;.+;.+
  action: keep
- source_labels: [__meta_kubernetes_pod_container_port_name]
  regex: metrics
  action: keep
- source_labels: [__meta_kubernetes_pod_phase]
  regex: Succeeded|Failed
  action: drop
- source_labels: [__meta_kubernetes_namespace]
  target_label: namespace
- source_labels: [__meta_kubernetes_pod_name]
  target_label: pod
- source_labels: [__meta_kubernetes_pod_node_name]
  target_label: node
- action: labelmap
  regex: __meta_kubernetes_pod_label_laptime_dev_(run|run_uid|component|server|load|trial)
{{- end }}

{{/*
What is kept of HAProxy's hundreds of figures.
*/}}
{{- define "laptime.haproxyMetrics" -}}
haproxy_process_(idle_time_percent|current_connections|nbthread)|haproxy_frontend_(current_sessions|http_requests_total)|haproxy_backend_(current_queue|max_queue|current_sessions|max_sessions|http_responses_total|connection_errors_total|response_errors_total|(queue|connect|response|total)_time_average_seconds|active_servers)
{{- end }}

{{/*
Where Prometheus fetches the seconds of trials that are over, and what it may not say of them: whichever
operator says it and however it was found, a trial's series are the same.
*/}}
{{- define "laptime.secondsPath" -}}/seconds{{- end }}
{{- define "laptime.secondsWithout" -}}instance|pod|container|service|endpoint{{- end }}

{{/*
What is kept of what the other pods of runs say: generators, and exporters beside Postgres and PgBouncer. All else
operator and agents alone may say, whatever a pod of a run says.
*/}}
{{- define "laptime.runMetrics" -}}laptime_(generator|postgres|pgbouncer)_.*{{- end }}

{{- define "laptime.prometheusConfig" -}}
{{- $namespaces := include "laptime.watchedNamespaces" . | fromJsonArray -}}
{{- /* By its name: a Prometheus of one's own that takes this configuration is in another one. */ -}}
{{- $own := list .Release.Namespace -}}
storage:
  tsdb:
    # The seconds of a trial come at its end, or when Prometheus is back.
    out_of_order_time_window: {{ .Values.prometheus.retention }}
global:
  scrape_interval: {{ .Values.prometheus.scrapeInterval }}
  scrape_timeout: {{ .Values.prometheus.scrapeInterval }}
scrape_configs:
  {{- if .Values.agent.enabled }}
  - job_name: laptime-agent
    # Labels and times are those of the agent's readings, not of the scrape.
    honor_labels: true
    honor_timestamps: true
    track_timestamps_staleness: true
    {{- include "laptime.discovery" (dict "namespaces" $own "selector" "app.kubernetes.io/name=laptime,app.kubernetes.io/component=agent") | nindent 4 }}
    relabel_configs:
      - source_labels: [__meta_kubernetes_pod_container_port_name]
        regex: metrics
        action: keep
      - source_labels: [__meta_kubernetes_pod_node_name]
        target_label: node
      # A new agent on the same node goes on with the same series.
      - source_labels: [__meta_kubernetes_pod_node_name]
        target_label: instance
  {{- else }}
  - job_name: kubelet
    scrape_interval: 5s
    scrape_timeout: 5s
    scheme: https
    metrics_path: /metrics/cadvisor
    authorization:
      credentials_file: /var/run/secrets/kubernetes.io/serviceaccount/token
    tls_config:
      ca_file: /var/run/secrets/kubernetes.io/serviceaccount/ca.crt
      # Most kubelets show a certificate that they have signed themselves.
      insecure_skip_verify: true
    kubernetes_sd_configs:
      - role: node
    relabel_configs:
      - source_labels: [__meta_kubernetes_node_name]
        target_label: node
    metric_relabel_configs:
      - source_labels: [__name__]
        regex: container_cpu_usage_seconds_total|container_cpu_cfs_throttled_seconds_total|container_memory_working_set_bytes|container_memory_max_usage_bytes
        action: keep
      {{- if not (has "*" $namespaces) }}
      - source_labels: [namespace]
        regex: {{ join "|" $namespaces | quote }}
        action: keep
      {{- end }}
  {{- end }}
  - job_name: laptime-prometheus
    # What the watching itself costs.
    scrape_interval: 5s
    scrape_timeout: 5s
    static_configs:
      - targets: [localhost:9090]
    metric_relabel_configs:
      - source_labels: [__name__]
        regex: process_(cpu_seconds_total|resident_memory_bytes)
        action: keep
  - job_name: laptime-operator
    scrape_interval: 5s
    scrape_timeout: 5s
    {{- include "laptime.discovery" (dict "namespaces" $own "selector" "app.kubernetes.io/name=laptime,app.kubernetes.io/component=operator") | nindent 4 }}
    relabel_configs:
      - source_labels: [__meta_kubernetes_pod_container_port_name]
        regex: metrics
        action: keep
  - job_name: laptime-seconds
    scrape_interval: 2s
    scrape_timeout: 2s
    metrics_path: {{ include "laptime.secondsPath" . }}
    # Labels and times are those of the trials.
    honor_labels: true
    honor_timestamps: true
    scrape_native_histograms: true
    {{- include "laptime.discovery" (dict "namespaces" $own "selector" "app.kubernetes.io/name=laptime,app.kubernetes.io/component=operator") | nindent 4 }}
    relabel_configs:
      - source_labels: [__meta_kubernetes_pod_container_port_name]
        regex: metrics
        action: keep
    metric_relabel_configs:
      - regex: {{ include "laptime.secondsWithout" . }}
        action: labeldrop
  {{- if $namespaces }}
  - job_name: laptime-haproxy
    # HAProxy would write hundreds of figures, and 1 s is often.
    params:
      scope: [global, frontend, backend]
    {{- include "laptime.runLimits" . | nindent 4 }}
    {{- include "laptime.discovery" (dict "namespaces" $namespaces "selector" "laptime.dev/run-uid,laptime.dev/component=haproxy") | nindent 4 }}
    relabel_configs:
      {{- include "laptime.runRelabeling" . | nindent 6 }}
    metric_relabel_configs:
      - source_labels: [__name__]
        regex: {{ include "laptime.haproxyMetrics" . }}
        action: keep
  - job_name: laptime-runs
    {{- include "laptime.runLimits" . | nindent 4 }}
    {{- include "laptime.discovery" (dict "namespaces" $namespaces "selector" "laptime.dev/run-uid,laptime.dev/component!=haproxy") | nindent 4 }}
    relabel_configs:
      {{- include "laptime.runRelabeling" . | nindent 6 }}
    metric_relabel_configs:
      - source_labels: [__name__]
        regex: {{ include "laptime.runMetrics" . }}
        action: keep
  {{- end }}
{{- end }}
