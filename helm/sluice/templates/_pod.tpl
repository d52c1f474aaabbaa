{{/* The security of a pod. */}}
{{- define "sluice.pod.security" -}}
runAsNonRoot: true
runAsUser: {{ .Values.runAs.user }}
runAsGroup: {{ .Values.runAs.group }}
fsGroup: {{ .Values.runAs.group }}
fsGroupChangePolicy: OnRootMismatch
seccompProfile:
  type: RuntimeDefault
{{- end -}}

{{/* The security of a container. */}}
{{- define "sluice.container.security" -}}
allowPrivilegeEscalation: false
readOnlyRootFilesystem: true
capabilities:
  drop: [ALL]
{{- end -}}

{{/* A process' variables: which services run there and where the others are, its keys, and Redis where it has it. Takes root and process. */}}
{{- define "sluice.process.env" -}}
{{- $process := .process -}}
{{- $processes := include "sluice.processes" .root | fromJson -}}
{{- $host := .root.Values.listenHost -}}
{{- $bind := ternary (printf "[%s]" $host) $host (contains ":" $host) -}}
- {name: SLUICE_SERVICES_RUN, value: {{ join "," $process.run | quote }}}
- {name: SLUICE_METRICS_LISTEN, value: {{ printf "%s:9401" $bind | quote }}}
- {name: SLUICE_STATE_DIR, value: /var/lib/sluice}
- {name: SLUICE_GRACE, value: {{ printf "%ds" (int $process.grace) }}}
- {name: SLUICE_DRAIN, value: {{ printf "%ds" (int $process.drain) }}}
- {name: HOME, value: /tmp}
{{- if $process.isEdge }}
- {name: SLUICE_HOST, value: {{ $host | quote }}}
- {name: SLUICE_PORT, value: "8080"}
{{- end }}
{{- if $process.listens }}
- {name: SLUICE_SERVICES_LISTEN, value: {{ printf "%s:9400" $bind | quote }}}
{{- end }}
{{- range $service, $home := $process.calls }}
- name: SLUICE_SERVICES_ADDRESSES_{{ upper $service }}
  value: dns:///{{ include "sluice.process.host" (dict "root" $.root "process" (get $processes $home)) }}:9400
{{- end }}
{{- if $process.usesTls }}
- {name: SLUICE_SERVICES_TLS_CERTIFICATE, value: /etc/sluice/tls/tls.crt}
- {name: SLUICE_SERVICES_TLS_KEY, value: /etc/sluice/tls/tls.key}
- {name: SLUICE_SERVICES_TLS_CA, value: /etc/sluice/tls/ca.crt}
{{- end }}
{{- range splitList " " (include "sluice.process.keys" .) }}
- {name: SLUICE_KEYS_CURRENT_{{ snakecase . | upper }}_FILE, value: /etc/sluice/keys/current/{{ . }}}
{{- if and $.root.Values.keys.previousSecretName (ne . "grantPrivateKey") }}
- {name: SLUICE_KEYS_PREVIOUS_{{ snakecase . | upper }}_FILE, value: /etc/sluice/keys/previous/{{ . }}}
{{- end }}
{{- end }}
{{- if $process.issues }}
{{- include "sluice.redis.env" .root }}
{{- end }}
{{- with $process.extraEnv }}
{{ toYaml . }}
{{- end }}
{{- end -}}

{{/* A process' mounts. Takes root and process. */}}
{{- define "sluice.process.mounts" -}}
- {name: config, mountPath: /etc/sluice/config, readOnly: true}
- {name: keys, mountPath: /etc/sluice/keys, readOnly: true}
{{- if .process.usesTls }}
- {name: tls, mountPath: /etc/sluice/tls, readOnly: true}
{{- end }}
{{- if and .process.issues (include "sluice.redis.files" .root) }}
- {name: redis, mountPath: /etc/sluice/redis, readOnly: true}
{{- end }}
- {name: state, mountPath: /var/lib/sluice}
{{- if .process.audits }}
- {name: audit, mountPath: /var/lib/sluice/audit}
{{- end }}
- {name: tmp, mountPath: /tmp}
{{- range $name, $_ := .process.secretFiles }}
- {name: secret-{{ $name }}, mountPath: /etc/sluice/secrets/{{ $name }}, readOnly: true}
{{- end }}
{{- with .process.extraVolumeMounts }}
{{ toYaml . }}
{{- end }}
{{- end -}}

{{/* A process' volumes. Takes root and process. */}}
{{- define "sluice.process.volumes" -}}
- name: config
  {{- include "sluice.config.volume" (dict "root" .root "name" .process.fullname) | nindent 2 }}
- name: keys
  projected:
    defaultMode: 0440
    sources:
      {{- $keys := splitList " " (include "sluice.process.keys" .) }}
      - secret:
          name: {{ .root.Values.keys.secretName }}
          items:
            {{- range $keys }}
            - {key: {{ . }}, path: current/{{ . }}}
            {{- end }}
      {{- with .root.Values.keys.previousSecretName }}
      - secret:
          name: {{ . }}
          items:
            {{- range without $keys "grantPrivateKey" }}
            - {key: {{ . }}, path: previous/{{ . }}}
            {{- end }}
      {{- end }}
{{- if .process.usesTls }}
- name: tls
  {{- include "sluice.tls.volume" . | nindent 2 }}
{{- end }}
{{- if .process.issues }}
{{- with include "sluice.redis.files" .root }}
- name: redis
  projected:
    defaultMode: 0440
    sources:
      {{- . | nindent 6 }}
{{- end }}
{{- end }}
- name: state
  emptyDir: {sizeLimit: 64Mi}
{{- if .process.audits }}
- name: audit
  {{- include "sluice.audit.volume" .root | nindent 2 }}
{{- end }}
- name: tmp
  emptyDir: {sizeLimit: 256Mi}
{{- include "sluice.secretFiles.volumes" .process.secretFiles }}
{{- with .process.extraVolumes }}
{{ toYaml . }}
{{- end }}
{{- end -}}

{{/* The volume with a process' certificate and the authorities that it believes. Takes root and process. */}}
{{- define "sluice.tls.volume" -}}
{{- $bundle := .root.Values.tls.caBundle -}}
{{- if $bundle.name -}}
projected:
  defaultMode: 0440
  sources:
    - secret:
        name: {{ .process.tlsSecret }}
        items: [{key: tls.crt, path: tls.crt}, {key: tls.key, path: tls.key}]
    - {{ ternary "secret" "configMap" (eq $bundle.kind "Secret") }}:
        name: {{ $bundle.name }}
        items: [{key: {{ $bundle.key | quote }}, path: ca.crt}]
{{- else -}}
secret:
  secretName: {{ .process.tlsSecret }}
  defaultMode: 0440
{{- end -}}
{{- end -}}

{{/*
The Secrets that a process reads as it starts, and not again, separated by commas. Takes root and process. Certificates between processes and what
options of storages name by {file: …} are taken up by the running process.
*/}}
{{- define "sluice.process.secretsAtStart" -}}
{{- $values := .root.Values -}}
{{- $names := list $values.keys.secretName $values.keys.previousSecretName -}}
{{- if .process.issues -}}
{{- $redis := $values.redis -}}
{{- $names = concat $names (list $redis.password.secretName $redis.sentinel.password.secretName $redis.tls.secretName) -}}
{{- end -}}
{{- range $name, $secret := .process.secretFiles -}}
{{- range $.process.extraEnv -}}
{{- if and (hasSuffix "_FILE" .name) (hasPrefix (printf "/etc/sluice/secrets/%s/" $name) (default "" .value)) }}{{ $names = append $names $secret }}{{ end -}}
{{- end -}}
{{- end -}}
{{- join "," ($names | compact | uniq | sortAlpha) -}}
{{- end -}}

{{/* Volumes of secretFiles, which it takes. */}}
{{- define "sluice.secretFiles.volumes" -}}
{{- range $name, $secret := . }}
- name: secret-{{ $name }}
  secret:
    secretName: {{ $secret }}
    defaultMode: 0440
{{- end }}
{{- end -}}

{{/* The disk of audit segments. */}}
{{- define "sluice.audit.volume" -}}
{{- if eq .Values.audit.volume "claim" -}}
ephemeral:
  volumeClaimTemplate:
    spec:
      accessModes: [ReadWriteOnce]
      {{- with .Values.audit.storageClassName }}
      storageClassName: {{ . }}
      {{- end }}
      resources:
        requests:
          storage: {{ .Values.audit.size }}
{{- else if eq .Values.audit.volume "existing" -}}
persistentVolumeClaim:
  claimName: {{ required "audit.existingClaim: the name of the claim is missing" .Values.audit.existingClaim }}
{{- else -}}
emptyDir: {sizeLimit: {{ .Values.audit.size }}}
{{- end -}}
{{- end -}}

{{/*
A process' probes, which it takes. Ready is a service that serves, and an edge that has the catalog and what one access mode needs: were
it to need all, an outage of one service would take away the edges, and with them what the others can still do. Neither of those that
restart a process asks for others: an edge that starts while the catalog is away waits, and is not killed for it.
*/}}
{{- define "sluice.process.probes" -}}
{{- $ready := dict "httpGet" (dict "path" "/readyz" "port" "metrics") -}}
{{- $alive := dict "httpGet" (dict "path" "/healthz" "port" "metrics") -}}
startupProbe:
  {{- mergeOverwrite (deepCopy $alive) .probes.startup | toYaml | nindent 2 }}
livenessProbe:
  {{- mergeOverwrite (deepCopy $alive) .probes.liveness | toYaml | nindent 2 }}
readinessProbe:
  {{- mergeOverwrite (deepCopy $ready) .probes.readiness | toYaml | nindent 2 }}
{{- end -}}

{{/* How long a pod has from being deleted to being killed. Takes process. An edge and its own services finish one after the other; then the last audit segment has 5 seconds to be shipped. */}}
{{- define "sluice.process.terminationSeconds" -}}
{{- $parts := ternary 2 1 (and .isEdge .listens) -}}
{{- add (int .preStopSeconds) (int .drain) (mul (int .grace) $parts) 5 10 -}}
{{- end -}}
