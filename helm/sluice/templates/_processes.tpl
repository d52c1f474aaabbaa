{{/*
All processes, as JSON: their values over processDefaults, and what follows from the services that run in each.

  fullname      of its objects
  account       its ServiceAccount
  serves        the gRPC services that run in it
  listens       whether others can call these
  calls         the services that its edge calls in other processes, each with the name of that process
  usesTls       whether it needs a certificate
  issues        whether it hands out what opens a store: it alone has Redis
  audits        whether it keeps an audit log
  ships         whether that is known to leave the pod
  reachesStores whether it opens an object store
  hasSsl        whether it speaks TLS to clients
  identity      its name in its certificate
*/}}
{{- define "sluice.processes" -}}
{{- $processes := dict -}}
{{- $home := dict -}}
{{- range $name, $given := .Values.processes -}}
{{- if $given -}}
{{- $process := mergeOverwrite (deepCopy $.Values.processDefaults) (deepCopy $given) -}}
{{- range $process.run -}}
{{- if hasKey $home . -}}
{{- fail (printf "processes: %s runs in %s and in %s; it runs in one process, and is scaled by its replicas" . (get $home .) $name) -}}
{{- end -}}
{{- $_ := set $home . $name -}}
{{- end -}}
{{- $_ := set $processes $name $process -}}
{{- end -}}
{{- end -}}
{{- range $service := list "edge" "catalog" "snapshot" "presign" "vending" -}}
{{- if not (hasKey $home $service) -}}
{{- fail (printf "processes: %s runs nowhere; add it to the run of a process" $service) -}}
{{- end -}}
{{- end -}}
{{- range $name, $process := $processes -}}
{{- $_ := include "sluice.process.facts" (dict "root" $ "name" $name "process" $process "home" $home) -}}
{{- end -}}
{{- toJson $processes -}}
{{- end -}}

{{/* Adds to a process what follows from its services. Takes root, name, process and home, the process of each service. */}}
{{- define "sluice.process.facts" -}}
{{- $process := .process -}}
{{- $run := $process.run -}}
{{- $isEdge := has "edge" $run -}}
{{- $serves := without $run "edge" -}}
{{- $calls := dict -}}
{{- if $isEdge -}}
{{- range $service, $home := omit .home "edge" -}}
{{- if not (has $service $run) }}{{ $_ := set $calls $service $home }}{{ end -}}
{{- end -}}
{{- end -}}
{{- $listens := and $serves $process.grpc -}}
{{- if and $serves (not $isEdge) (not $process.grpc) -}}
{{- fail (printf "processes.%s.grpc must be true: without it nobody can reach %s" .name (join ", " $serves)) -}}
{{- end -}}
{{- $fullname := printf "%s-%s" (include "sluice.fullname" .root) .name -}}
{{- $account := default $fullname $process.serviceAccount.name -}}
{{- $config := mergeOverwrite (deepCopy .root.Values.config) (deepCopy $process.config) -}}
{{- $landing := dig "usage" "landing" "" $config -}}
{{- $state := dig "state" "location" "" $config -}}
{{- $audits := or $isEdge (has "catalog" $run) -}}
{{- $holdsTables := or (has "snapshot" $run) (has "presign" $run) (has "vending" $run) -}}
{{- $_ := set $process "fullname" $fullname -}}
{{- $_ := set $process "account" $account -}}
{{- $_ := set $process "isEdge" $isEdge -}}
{{- $_ := set $process "serves" $serves -}}
{{- $_ := set $process "listens" (not (empty $listens)) -}}
{{- $_ := set $process "calls" $calls -}}
{{- $_ := set $process "usesTls" (not (and (empty $listens) (empty $calls))) -}}
{{- $_ := set $process "issues" (or (has "presign" $run) (has "vending" $run)) -}}
{{- $_ := set $process "audits" $audits -}}
{{- $_ := set $process "ships" (and $audits (ne $landing "")) -}}
{{- $_ := set $process "hasSsl" (and $isEdge (hasKey $config "ssl")) -}}
{{- /* What a file says that something else keeps is not known here: it may ship audit segments. */ -}}
{{- $toStore := and $audits (or (contains "://" $landing) (ne .root.Values.existingConfig.name "")) -}}
{{- $_ := set $process "reachesStores" (or $holdsTables $toStore (and (has "catalog" $run) (contains "://" $state))) -}}
{{- $_ := set $process "identity" (printf "spiffe://%s/ns/%s/sa/%s" .root.Values.tls.trustDomain .root.Release.Namespace $account) -}}
{{- $_ := set $process "tlsSecret" (default (printf "%s-tls" $fullname) (get .root.Values.tls.secretNames .name)) -}}
{{- end -}}

{{/* The name by which other processes call a process. Takes root and process. */}}
{{- define "sluice.process.host" -}}
{{- printf "%s.%s.svc.%s" .process.fullname .root.Release.Namespace .root.Values.clusterDomain -}}
{{- end -}}

{{/* The entries of the keys' Secret that a process is given, separated by spaces. Takes root and process. */}}
{{- define "sluice.process.keys" -}}
{{- if .root.Values.keys.derived -}}
{{- if lt (len .process.run) 5 -}}
{{- fail "keys.derived: one secret for all keys is only for a process that runs all five services; give each its own keys" -}}
{{- end -}}
secret
{{- else -}}
{{- $purposes := dict "edge" (list "localUrl") "catalog" (list "listPage" "grantPrivateKey") "snapshot" (list "filePage" "refresh" "grantPublicKey") "presign" (list "sealing" "localUrl" "grantPublicKey") "vending" (list "sealing" "grantPublicKey") -}}
{{- $entries := list -}}
{{- range .process.run }}{{ $entries = concat $entries (get $purposes .) }}{{ end -}}
{{- join " " ($entries | uniq | sortAlpha) -}}
{{- end -}}
{{- end -}}

{{/*
How many pods a Deployment asks for; empty: the field is left out. Takes root and process. Once an autoscaler sees to that, the number is the one that is
there: a field that an upgrade takes away goes to a single pod, and any other number would undo the autoscaler's work. Whoever renders without a cluster
cannot know it, and leaves it out.
*/}}
{{- define "sluice.process.replicas" -}}
{{- if not .process.autoscaling.enabled -}}
{{- .process.replicas -}}
{{- else -}}
{{- $live := lookup "apps/v1" "Deployment" .root.Release.Namespace .process.fullname -}}
{{- if $live -}}
{{- if not (include "sluice.process.isScaled" (dict "root" .root "live" $live)) }}{{ $live.spec.replicas }}{{ end -}}
{{- else if lookup "v1" "ServiceAccount" .root.Release.Namespace "default" -}}
{{- .process.autoscaling.minReplicas -}}
{{- end -}}
{{- end -}}
{{- end -}}

{{/*
Whether a Deployment's number of pods is an autoscaler's, and stays so without us; empty if not. Takes root and live, the Deployment. So it is by server-side
apply (Helm 4), where a number in a manifest would be in conflict with the autoscaler's: in a rollback, say.
*/}}
{{- define "sluice.process.isScaled" -}}
{{- $applied := false -}}
{{- $scaled := false -}}
{{- range .live.metadata.managedFields -}}
{{- $fields := dig "f:spec" dict (.fieldsV1 | default dict) -}}
{{- if and (eq .operation "Apply") (hasKey $fields "f:template") }}{{ $applied = true }}{{ end -}}
{{- if and (eq (.subresource | default "") "scale") (hasKey $fields "f:replicas") }}{{ $scaled = true }}{{ end -}}
{{- end -}}
{{- if and $applied $scaled (semverCompare ">=4.0.0-0" .root.Capabilities.HelmVersion.Version) }}yes{{ end -}}
{{- end -}}
