# usage-task.sh NAME ISSUE SPEC runs a task of an issue and waits for its end.
kubectl apply -f - <<END &&
apiVersion: core.platform.ai/v1alpha1
kind: Task
metadata:
  name: $1
  annotations:
    platform.ai/github-repository: acme/shop
    platform.ai/monitor-item-kind: issue
    platform.ai/monitor-item-number: "$2"
spec: $3
END
kubectl wait --for=condition=Complete --timeout=300s task/$1
created=$(kubectl get task $1 -o jsonpath='{.metadata.creationTimestamp}')
while [ "$(date -u +%FT%TZ)" = "$created" ]; do sleep 0.05; done # so that tasks sort by their creation, which has whole seconds
