{{/*
The gateway's file for one process, or for the pipeline. Takes root, overlay (settings over config) and storageOptions.
Environment variables say the rest: which services run there, its keys, and Redis.
*/}}
{{- define "sluice.config" -}}
{{- $config := mergeOverwrite (deepCopy .root.Values.config) (deepCopy .overlay) -}}
{{- if dig "authorization" "bearerToken" "" $config -}}
{{- fail "config.authorization.bearerToken: a ConfigMap is no place for a secret; put the token into a Secret, name that by secretFiles: {bearer: SECRET} of the process that runs the catalog, and give it extraEnv: [{name: SLUICE_AUTHORIZATION_BEARER_TOKEN_FILE, value: /etc/sluice/secrets/bearer/ENTRY}]" -}}
{{- end -}}
{{- $storages := list -}}
{{- $known := list -}}
{{- range $storage := $config.storages -}}
{{- $known = append $known $storage.name -}}
{{- $own := get $.storageOptions $storage.name | default dict -}}
{{- $options := mergeOverwrite (deepCopy ($storage.options | default dict)) (deepCopy $own) -}}
{{- include "sluice.config.refuseSecrets" (dict "options" $options "path" (printf "the storage %s: options" $storage.name)) -}}
{{- $storages = append $storages (mergeOverwrite (deepCopy $storage) (dict "options" $options)) -}}
{{- end -}}
{{- range $name, $_ := .storageOptions -}}
{{- if not (has $name $known) -}}
{{- fail (printf "storageOptions: config.storages has no storage by the name %s" $name) -}}
{{- end -}}
{{- end -}}
{{- if hasKey $config "storages" }}{{ $_ := set $config "storages" $storages }}{{ end -}}
{{- $principals := $config.principals | default list -}}
{{- range $name, $process := include "sluice.processes" .root | fromJson -}}
{{- if $process.calls -}}
{{- $principals = append $principals (dict "name" $name "certificate" $process.identity "permissions" (list "edge")) -}}
{{- end -}}
{{- end -}}
{{- with $principals }}{{ $_ := set $config "principals" . }}{{ end -}}
{{- toYaml $config -}}
{{- end -}}

{{/* Fails where a secret itself stands in the options of a storage, in which every {value: …} is one. Takes options and path. */}}
{{- define "sluice.config.refuseSecrets" -}}
{{- range $key, $inner := .options -}}
{{- if eq $key "value" -}}
{{- fail (printf "%s.value: a ConfigMap is no place for a secret; put it into a Secret, name that by secretFiles, and give {file: /etc/sluice/secrets/NAME/ENTRY}" $.path) -}}
{{- else if kindIs "map" $inner -}}
{{- include "sluice.config.refuseSecrets" (dict "options" $inner "path" (printf "%s.%s" $.path $key)) -}}
{{- end -}}
{{- end -}}
{{- end -}}

{{/* Changes when a setting does that the gateway does not take up by itself. Takes what sluice.config takes. */}}
{{- define "sluice.config.checksum" -}}
{{- $config := include "sluice.config" . | fromYaml -}}
{{- omit $config "shares" "recipients" "principals" "authorization" "storages" "limits" | toJson | sha256sum -}}
{{- end -}}

{{/* The volume with the gateway's file. Takes root and name, the ConfigMap of the chart's own. */}}
{{- define "sluice.config.volume" -}}
{{- $existing := .root.Values.existingConfig -}}
{{- if and $existing.name (eq $existing.kind "Secret") -}}
secret:
  secretName: {{ $existing.name }}
  defaultMode: 0440
  items: [{key: {{ $existing.key | quote }}, path: server.yaml}]
{{- else if $existing.name -}}
configMap:
  name: {{ $existing.name }}
  items: [{key: {{ $existing.key | quote }}, path: server.yaml}]
{{- else -}}
configMap:
  name: {{ .name }}
{{- end -}}
{{- end -}}
