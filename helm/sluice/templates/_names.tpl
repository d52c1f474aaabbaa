{{/* What objects' names begin with; short enough for all that is added to it. */}}
{{- define "sluice.fullname" -}}
{{- if .Values.fullnameOverride -}}
{{- .Values.fullnameOverride | trunc 40 | trimSuffix "-" -}}
{{- else if contains (include "sluice.name" .) .Release.Name -}}
{{- .Release.Name | trunc 40 | trimSuffix "-" -}}
{{- else -}}
{{- printf "%s-%s" .Release.Name (include "sluice.name" .) | trunc 40 | trimSuffix "-" -}}
{{- end -}}
{{- end -}}

{{- define "sluice.name" -}}
{{- default .Chart.Name .Values.nameOverride | trunc 40 | trimSuffix "-" -}}
{{- end -}}

{{/* Labels of an object. Takes root and component. */}}
{{- define "sluice.labels" -}}
{{ include "sluice.selector" . }}
app.kubernetes.io/version: {{ .root.Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .root.Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .root.Chart.Name .root.Chart.Version | replace "+" "_" }}
{{- with .root.Values.labels }}
{{ toYaml . }}
{{- end }}
{{- end -}}

{{/* Labels that find the pods of a component. Takes root and component. */}}
{{- define "sluice.selector" -}}
app.kubernetes.io/name: {{ include "sluice.name" .root }}
app.kubernetes.io/instance: {{ .root.Release.Name }}
app.kubernetes.io/component: {{ .component }}
{{- end -}}

{{/* Labels of a component's pods: nothing that an upgrade of the chart alone changes, and pods would be replaced for. Takes root and component. */}}
{{- define "sluice.podLabels" -}}
{{ include "sluice.selector" . }}
{{- with .root.Values.labels }}
{{ toYaml . }}
{{- end }}
{{- end -}}

{{/* A process' image: its own name, tag or digest over those of all. Takes root and process. */}}
{{- define "sluice.process.image" -}}
{{- $own := .process.image -}}
{{- $image := deepCopy .root.Values.image -}}
{{- if $own.repository }}{{ $_ := set $image "repository" $own.repository }}{{ end -}}
{{- /* A tag of its own is not to lose against the digest of the others. */ -}}
{{- if or $own.tag $own.digest }}{{ $image = mergeOverwrite $image (pick $own "tag" "digest") }}{{ end -}}
{{- include "sluice.image" (dict "root" .root "image" $image) -}}
{{- end -}}

{{/* An image's reference. Takes root and image. */}}
{{- define "sluice.image" -}}
{{- $name := .image.repository -}}
{{- if .image.registry }}{{ $name = printf "%s/%s" .image.registry $name }}{{ end -}}
{{- if .image.digest -}}
{{- printf "%s@%s" $name .image.digest -}}
{{- else -}}
{{- printf "%s:%s" $name (default .root.Chart.AppVersion .image.tag) -}}
{{- end -}}
{{- end -}}
