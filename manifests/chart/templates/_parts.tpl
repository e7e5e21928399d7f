{{- /* The image of a program: of "values" (repository, tag), with the version of the chart unless a tag is set. */ -}}
{{- define "platform.image" -}}
{{ .values.repository }}:{{ .values.tag | default .root.Chart.AppVersion }}
{{- end -}}

{{- /* Where the platform's own Pods run, and how their images are pulled. */ -}}
{{- define "platform.pod" -}}
{{- range $name := list "nodeSelector" "tolerations" "affinity" "imagePullSecrets" }}
{{- with index $.Values $name }}
{{ $name }}:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- end }}
{{- end -}}

{{- /* The routes of the router. */ -}}
{{- define "platform.routes" -}}
{{ dict "namespaces" .Values.router.routes | toYaml }}
{{- end -}}
