{{/* The name of the pipeline's objects. */}}
{{- define "sluice.pipeline.name" -}}
{{- include "sluice.fullname" . }}-pipeline
{{- end -}}

{{/* Whether anything of the pipeline runs; empty if not. */}}
{{- define "sluice.pipeline.runs" -}}
{{- $pipeline := .Values.pipeline -}}
{{- if or $pipeline.worker.replicas $pipeline.cronJobs.usage.schedule $pipeline.cronJobs.worker.schedule $pipeline.sparkApplication.schedule -}}
yes
{{- end -}}
{{- end -}}

{{/* Whether workers are Spark drivers whose executors are pods; empty if not. */}}
{{- define "sluice.pipeline.workerMakesPods" -}}
{{- if hasPrefix "k8s://" (dig "pipeline" "spark" "master" "" .Values.config) -}}
yes
{{- end -}}
{{- end -}}

{{/* Whether Spark asks Kubernetes for pods; empty if not. */}}
{{- define "sluice.pipeline.makesPods" -}}
{{- if or .Values.pipeline.cronJobs.usage.schedule .Values.pipeline.sparkApplication.schedule (include "sluice.pipeline.workerMakesPods" .) -}}
yes
{{- end -}}
{{- end -}}

{{/*
Where all of the pipeline is. Who may make pods somewhere can use every Secret and every account there, so Spark does so
where the gateway's are not.
*/}}
{{- define "sluice.pipeline.namespace" -}}
{{- $own := .Values.pipeline.namespace -}}
{{- if and (include "sluice.pipeline.makesPods" .) (has $own (list "" .Release.Namespace)) -}}
{{- fail (printf "pipeline.namespace: Spark makes pods, and whoever may make pods in %s could use the gateway's keys; name another namespace, which is there, for the pipeline" .Release.Namespace) -}}
{{- end -}}
{{- default .Release.Namespace $own -}}
{{- end -}}

{{/* Settings of the pipeline over config: workers' executors are where their account may make them. */}}
{{- define "sluice.pipeline.overlay" -}}
{{- if include "sluice.pipeline.workerMakesPods" . -}}
{{- dict "pipeline" (dict "spark" (dict "conf" (dict "spark.kubernetes.namespace" (include "sluice.pipeline.namespace" .)))) | toYaml -}}
{{- else -}}
{}
{{- end -}}
{{- end -}}

{{/* The account of all that runs the pipeline. */}}
{{- define "sluice.pipeline.account" -}}
{{- default (include "sluice.pipeline.name" .) .Values.pipeline.serviceAccount.name -}}
{{- end -}}

{{/* Labels of the pipeline's pods. */}}
{{- define "sluice.pipeline.podLabels" -}}
{{ include "sluice.podLabels" (dict "root" . "component" "pipeline") }}
{{- if hasKey .Values.pipeline.serviceAccount.annotations "azure.workload.identity/client-id" }}
azure.workload.identity/use: "true"
{{- end }}
{{- end -}}

{{/* The part of a pod that all of the pipeline's have in common, but automountServiceAccountToken: for drivers with executors in pods only. */}}
{{- define "sluice.pipeline.pod" -}}
serviceAccountName: {{ include "sluice.pipeline.account" . }}
enableServiceLinks: false
securityContext:
  {{- include "sluice.pod.security" . | nindent 2 }}
{{- with .Values.image.pullSecrets }}
imagePullSecrets:
  {{- range . }}
  - name: {{ . }}
  {{- end }}
{{- end }}
volumes:
  {{- include "sluice.pipeline.volumes" . | nindent 2 }}
{{- with .Values.pipeline.affinity }}
affinity:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .Values.pipeline.nodeSelector }}
nodeSelector:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .Values.pipeline.tolerations }}
tolerations:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- end -}}

{{/* The part of a container that all of the pipeline's have in common. */}}
{{- define "sluice.pipeline.container" -}}
image: {{ include "sluice.image" (dict "root" . "image" .Values.pipeline.image) | quote }}
imagePullPolicy: {{ .Values.pipeline.image.pullPolicy }}
env:
  {{- include "sluice.pipeline.env" . | nindent 2 }}
securityContext:
  {{- include "sluice.container.security" . | nindent 2 }}
volumeMounts:
  {{- include "sluice.pipeline.mounts" . | nindent 2 }}
{{- end -}}

{{/* A worker is no gateway: it has none of the gateway's keys. */}}
{{- define "sluice.pipeline.env" -}}
- {name: SLUICE_METRICS_LISTEN, value: {{ printf "%s:9401" (ternary (printf "[%s]" .Values.listenHost) .Values.listenHost (contains ":" .Values.listenHost)) | quote }}}
- {name: SLUICE_STATE_DIR, value: /var/lib/sluice}
- {name: SLUICE_GRACE, value: {{ .Values.pipeline.worker.grace }}s}
- {name: HOME, value: /var/lib/sluice}
- {name: SPARK_LOCAL_DIRS, value: /var/lib/sluice/spark}
- {name: POD_IP, valueFrom: {fieldRef: {fieldPath: status.podIP}}}
- {name: POD_NAME, valueFrom: {fieldRef: {fieldPath: metadata.name}}}
{{- with .Values.pipeline.extraEnv }}
{{ toYaml . }}
{{- end }}
{{- end -}}

{{- define "sluice.pipeline.mounts" -}}
- {name: config, mountPath: /etc/sluice/config, readOnly: true}
- {name: spark, mountPath: /etc/sluice/spark, readOnly: true}
- {name: scratch, mountPath: /var/lib/sluice}
- {name: tmp, mountPath: /tmp}
{{- range $name, $_ := .Values.pipeline.secretFiles }}
- {name: secret-{{ $name }}, mountPath: /etc/sluice/secrets/{{ $name }}, readOnly: true}
{{- end }}
{{- with .Values.pipeline.extraVolumeMounts }}
{{ toYaml . }}
{{- end }}
{{- end -}}

{{- define "sluice.pipeline.volumes" -}}
- name: config
  {{- include "sluice.config.volume" (dict "root" . "name" (include "sluice.pipeline.name" .)) | nindent 2 }}
- name: spark
  configMap:
    name: {{ include "sluice.pipeline.name" . }}-spark
- name: scratch
  emptyDir: {sizeLimit: {{ .Values.pipeline.scratchSize }}}
- name: tmp
  emptyDir: {sizeLimit: 1Gi}
{{- include "sluice.secretFiles.volumes" .Values.pipeline.secretFiles }}
{{- with .Values.pipeline.extraVolumes }}
{{ toYaml . }}
{{- end }}
{{- end -}}
