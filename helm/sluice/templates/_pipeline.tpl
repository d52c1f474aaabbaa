{{/* The name of the pipeline's objects. */}}
{{- define "sluice.pipeline.name" -}}
{{- include "sluice.fullname" . }}-pipeline
{{- end -}}

{{/* The name of what makes pods for one of its jobs, no longer than the limit of its kind. Takes root, job and limit. */}}
{{- define "sluice.pipeline.jobName" -}}
{{- $end := printf "-pipeline-%s" .job -}}
{{- include "sluice.fullname" .root | trunc (int (sub .limit (len $end))) | trimSuffix "-" }}{{ $end }}
{{- end -}}

{{/* Kubernetes' limit leaves room for the time that is added to the names of Jobs. Takes root and job. */}}
{{- define "sluice.pipeline.cronJobName" -}}
{{- include "sluice.pipeline.jobName" (mergeOverwrite (dict "limit" 52) .) -}}
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

{{/* Settings of the pipeline over config: what workers need for executors in pods, under what config has of Spark's settings. */}}
{{- define "sluice.pipeline.overlay" -}}
{{- if include "sluice.pipeline.workerMakesPods" . -}}
{{- $given := dig "pipeline" "spark" "conf" dict .Values.config -}}
{{- $conf := mergeOverwrite (include "sluice.pipeline.driverConf" . | fromYaml) (deepCopy $given) -}}
{{- /* Their account may make them nowhere else. */ -}}
{{- $_ := set $conf "spark.kubernetes.namespace" (include "sluice.pipeline.namespace" .) -}}
{{- dict "pipeline" (dict "spark" (dict "conf" $conf)) | toYaml -}}
{{- else -}}
{}
{{- end -}}
{{- end -}}

{{/*
Settings of Spark where one of our pods is the driver and executors are pods beside it. Spark itself puts in the variables: a file of settings
cannot know the pod.
*/}}
{{- define "sluice.pipeline.driverConf" -}}
{{- dict
  "spark.kubernetes.namespace" (include "sluice.pipeline.namespace" .)
  "spark.kubernetes.container.image" (include "sluice.image" (dict "root" . "image" .Values.pipeline.image))
  "spark.kubernetes.container.image.pullPolicy" .Values.pipeline.image.pullPolicy
  "spark.kubernetes.driver.pod.name" "${env:POD_NAME}"
  "spark.kubernetes.executor.podTemplateFile" "/etc/sluice/spark/executor.yaml"
  "spark.kubernetes.authenticate.executor.serviceAccountName" (include "sluice.pipeline.account" .)
  "spark.driver.host" "${env:POD_IP}"
  "spark.driver.bindAddress" .Values.listenHost
  "spark.driver.port" "7078"
  "spark.driver.blockManager.port" "7079"
| toYaml -}}
{{- end -}}

{{/* The account of all that runs the pipeline. */}}
{{- define "sluice.pipeline.account" -}}
{{- $account := .Values.pipeline.serviceAccount -}}
{{- if not (or $account.create $account.name) -}}
{{- fail "pipeline.serviceAccount.name: name the account that is there, or let the chart make one by pipeline.serviceAccount.create" -}}
{{- end -}}
{{- default (include "sluice.pipeline.name" .) $account.name -}}
{{- end -}}

{{/* Labels of the pipeline's pods. */}}
{{- define "sluice.pipeline.podLabels" -}}
{{ include "sluice.podLabels" (dict "root" . "component" "pipeline") }}
{{- if hasKey .Values.pipeline.serviceAccount.annotations "azure.workload.identity/client-id" }}
azure.workload.identity/use: "true"
{{- end }}
{{- end -}}

{{/*
The part of a pod that all of the pipeline's have in common, executors included. What differs: volumes, and automountServiceAccountToken, which is
for drivers with executors in pods only.
*/}}
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
{{- with include "sluice.pipeline.placement" . | trim }}
{{ . }}
{{- end }}
{{- end -}}

{{/* Which nodes the pipeline's pods are on. */}}
{{- define "sluice.pipeline.placement" -}}
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

{{/* The part of a pod that all have in common that the chart makes itself: workers, and drivers of CronJobs. */}}
{{- define "sluice.pipeline.ownPod" -}}
# A worker may finish what is under way.
terminationGracePeriodSeconds: {{ add (int .Values.pipeline.worker.grace) 15 }}
{{ include "sluice.pipeline.pod" . }}
volumes:
  {{- include "sluice.pipeline.volumes" . | nindent 2 }}
{{- end -}}

{{/* The part of a container that all of those have in common. Takes root, and driverMemory where Spark's driver runs in it. */}}
{{- define "sluice.pipeline.container" -}}
image: {{ include "sluice.image" (dict "root" .root "image" .root.Values.pipeline.image) | quote }}
imagePullPolicy: {{ .root.Values.pipeline.image.pullPolicy }}
env:
  {{- include "sluice.pipeline.env" .root | nindent 2 }}
  {{- with .driverMemory }}
  # Over Java's heap of one gigabyte, and under spark.driver.memory.
  - {name: SPARK_DRIVER_MEMORY, value: {{ . | quote }}}
  {{- end }}
  {{- with .root.Values.pipeline.extraEnv }}
  {{- toYaml . | nindent 2 }}
  {{- end }}
securityContext:
  {{- include "sluice.container.security" .root | nindent 2 }}
volumeMounts:
  {{- include "sluice.pipeline.mounts" .root | nindent 2 }}
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
{{- end -}}

{{- define "sluice.pipeline.mounts" -}}
- {name: config, mountPath: /etc/sluice/config, readOnly: true}
- {name: spark, mountPath: /etc/sluice/spark, readOnly: true}
- {name: scratch, mountPath: /var/lib/sluice}
- {name: tmp, mountPath: /tmp}
{{- with include "sluice.pipeline.extraMounts" . | trim }}
{{ . }}
{{- end }}
{{- end -}}

{{/* Mounts that drivers and executors have alike. */}}
{{- define "sluice.pipeline.extraMounts" -}}
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
{{- with include "sluice.pipeline.extraVolumes" . | trim }}
{{ . }}
{{- end }}
{{- end -}}

{{/* Volumes that drivers and executors have alike. */}}
{{- define "sluice.pipeline.extraVolumes" -}}
{{- include "sluice.secretFiles.volumes" .Values.pipeline.secretFiles }}
{{- with .Values.pipeline.extraVolumes }}
{{ toYaml . }}
{{- end }}
{{- end -}}
