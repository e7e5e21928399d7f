// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package host

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
	"github.com/platform-ai/platform/test/kit"
	"github.com/platform-ai/platform/test/kit/standalone"
)

// TestKubectlCreatesEveryKind: kubectl create, and apply where objects are kept, work for each kind with kubectl's own validation,
// also for kinds that are answered and not stored. Without minutes nothing is applied.
func TestKubectlCreatesEveryKind(t *testing.T) {
	t.Parallel()
	s := standalone.Start(t)
	task, _ := s.RESTTask(t, "made")
	objects := map[string]string{} // by kind
	for _, u := range examples(t) {
		objects[u.GetKind()] = string(kit.Must[[]byte](t)(u.MarshalJSON()))
	}
	for kind, content := range map[string]string{
		"Chat":                 `"spec":{"message":"hello"}`,
		"ExecutionEvent":       `"taskName":"made","type":"ModelMessage"`,
		"MemoryProposalSearch": `"spec":{"query":"c"}`,
		"MemorySearch":         `"spec":{"query":"c"}`,
		"TaskQuery":            `"spec":{"orderBy":"tokens"}`,
		"ToolCall":             `"spec":{"taskName":"made","toolName":"web_fetch","arguments":{"url":"https://example.com/"}}`,
		"TranscriptSearch":     `"spec":{"query":"c"}`,
		"UsageLink":            `"spec":{"taskUID":"` + string(task.UID) + `","repository":"o/r","number":1,"origin":"created","state":"open"}`,
		"UsageReport":          `"spec":{"mode":"summary"}`,

		"GatewayRecordQuery":      `"spec":{"records":"events"}`,
		"ConnectionAuthorization": `"spec":{"providerRef":{"name":"p"}}`,
		"Connection":              `"metadata":{"name":"made"},"spec":{"providerRef":{"name":"p"}}`,

		// No user makes these, but administrators may.
		"GatewayDelivery":   `"metadata":{"name":"made"},"spec":{"gatewayName":"g","gatewayUid":"u","idempotencyId":"i","eventId":"e","sessionName":"s","kind":"final","accountId":"a","contextId":"c","text":"t","createdAt":"2026-01-01T00:00:00.000000Z"}`,
		"GatewayEvent":      `"metadata":{"name":"made"},"spec":{"gatewayName":"g","gatewayUid":"u","externalEventId":"e","payloadSHA256":"0","protocolVersion":"platform.gateway.v1","eventType":"text","accountId":"a","contextId":"c","senderId":"s","text":"t","createdAt":"2026-01-01T00:00:00.000000Z"}`,
		"CodeHostDelivery":  `"metadata":{"name":"made"},"spec":{"deliveryID":"d","bodySHA256":"b","event":"push","receivedAt":"2026-01-01T00:00:00.000000Z"}`,
		"MonitorCommand":    `"metadata":{"name":"made"},"spec":{"monitorName":"m","monitorUID":"u","targetKind":"issue","number":1,"intent":"plan","source":"api"}`,
		"MonitorItem":       `"metadata":{"name":"made"},"spec":{"monitorName":"m","monitorUID":"u","targetKind":"issue","number":1}`,
		"MonitorMutation":   `"metadata":{"name":"made"},"spec":{"monitorName":"m","monitorUID":"u","targetKind":"issue","number":1,"operation":"merge"}`,
		"MonitorRun":        `"metadata":{"name":"made"},"spec":{"monitorName":"m","monitorUID":"u","trigger":"request"}`,
		"MonitorWorkAction": `"metadata":{"name":"made"},"spec":{"monitorName":"m","monitorUID":"u","targetKind":"issue","number":1,"desiredAction":"plan","attempt":1}`,
		"ToolEffect":        `"metadata":{"name":"made"},"spec":{"taskName":"none","taskUID":"u","tool":"t","connectorProvider":"p","connection":{"name":"c","uid":"u","generation":1,"grantSequence":1},"toolDigest":"d","policyDigest":"d","requestDigest":"d","timeoutSeconds":30,"createdAt":"2026-01-01T00:00:00.000000Z"}`,
	} {
		objects[kind] = fmt.Sprintf(`{"apiVersion":%q,"kind":%q,%s}`, v1alpha1.SchemeGroupVersion.String(), kind, content)
	}
	// What the server answers that has no model, and does not know which person asks.
	refused := map[string]string{"Chat": "Provider", "Connection": "connectionauthorization", "ConnectionAuthorization": "person"}
	resources, err := s.Kubernetes(t).Discovery().ServerResourcesForGroupVersion(v1alpha1.SchemeGroupVersion.String())
	if err != nil {
		t.Fatal(err)
	}
	files := map[string]*strings.Builder{"refused": {}, "create": {}, "apply": {}} // of objects, by how they are sent
	for _, r := range resources.APIResources {
		if strings.Contains(r.Name, "/") || !slices.Contains(r.Verbs, "create") {
			continue
		}
		object, ok := objects[r.Kind]
		if !ok {
			t.Errorf("%s can be created; add an object of it to this test", r.Kind)
			continue
		}
		to := []string{"create"}
		if slices.Contains(r.Verbs, "patch") {
			to = append(to, "apply")
		}
		if refused[r.Kind] != "" {
			to = []string{"refused"}
		}
		for _, name := range to {
			fmt.Fprintf(files[name], "---\n%s\n", object)
		}
	}
	env := append(os.Environ(), "HOME="+t.TempDir(), "KUBECONFIG="+s.Kubeconfig)
	ways := []string{"refused create", "create create"}
	if kit.Offered(kit.Minutes) {
		ways = append(ways, "apply apply", "apply apply --server-side --force-conflicts")
	}
	for _, way := range ways {
		words := strings.Fields(way)
		file := filepath.Join(t.TempDir(), "objects.yaml")
		if err := os.WriteFile(file, []byte(files[words[0]].String()), 0o600); err != nil {
			t.Fatal(err)
		}
		got := kit.Run(t, env, kit.Bin(t, "kubectl"), append(words[1:], "-f", file)...)
		switch {
		case words[0] != "refused" && got.Code != 0:
			t.Errorf("kubectl %s: %s", words[1:], got.Output)
		case words[0] == "refused":
			for kind, why := range refused {
				if got.Code == 0 || !strings.Contains(got.Output, why) {
					t.Errorf("kubectl create: %s: want %q: %s", kind, why, got.Output)
				}
			}
		}
	}
}
