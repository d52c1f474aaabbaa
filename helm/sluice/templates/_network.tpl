{{/* A rule that lets names be looked up. */}}
{{- define "sluice.network.dns" -}}
- to:
    {{- toYaml .Values.networkPolicy.dns | nindent 4 }}
  ports: [{port: 53, protocol: UDP}, {port: 53, protocol: TCP}]
{{- end -}}

{{/* A rule that lets stores and token services be reached. */}}
{{- define "sluice.network.stores" -}}
- to:
    {{- toYaml .Values.networkPolicy.stores.to | nindent 4 }}
  ports:
    {{- range .Values.networkPolicy.stores.ports }}
    - {port: {{ . }}}
    {{- end }}
{{- end -}}
