{{/* A rule that lets names be looked up. */}}
{{- define "sluice.network.dns" -}}
- to:
    {{- toYaml .Values.networkPolicy.dns.to | nindent 4 }}
  ports:
    {{- range .Values.networkPolicy.dns.ports }}
    - {port: {{ . }}, protocol: UDP}
    - {port: {{ . }}, protocol: TCP}
    {{- end }}
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
