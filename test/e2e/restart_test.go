// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/platform-ai/platform/test/kit"
)

const agents = "/apis/core.platform.ai/v1alpha1/namespaces/default/agents"

func applyAgent(t *testing.T, s place, name string) {
	t.Helper()
	s.MustShell(t, fmt.Sprintf(`kubectl create -f - <<< '{"apiVersion":"core.platform.ai/v1alpha1","kind":"Agent","metadata":{"name":%q},"spec":{"systemPrompt":{"inline":"x"}}}'`, name))
}

// TestWatchAcrossRestart follows objects with kubectl while the server is
// stopped and started again: the first watch ends by itself, and one that is
// resumed at the last revision seen gets what came after, once.
func TestWatchAcrossRestart(t *testing.T) {
	s := local{kit.StartServer(t, t.TempDir())}
	applyAgent(t, s, "one")
	watch := kit.Start(t, s.Env(t), kit.Bin(t, "kubectl"), "get", "agents", "--watch", "--output", "name")
	watch.Await(t, "agent.core.platform.ai/one")
	applyAgent(t, s, "two")
	watch.Await(t, "agent.core.platform.ai/two")
	var list metav1.PartialObjectMetadataList
	if err := json.Unmarshal([]byte(s.MustShell(t, "kubectl get --raw "+agents)), &list); err != nil {
		t.Fatal(err)
	}
	revision := list.ResourceVersion
	applyAgent(t, s, "three")
	watch.Await(t, "agent.core.platform.ai/three")

	if err := s.Stop(); err != nil {
		t.Fatalf("the server did not end cleanly: %v", err)
	}
	if err := watch.Wait(); err != nil {
		t.Errorf("kubectl get -w ended with %v", err)
	}
	s.Restart(t)
	resumed := kit.Start(t, s.Env(t), kit.Bin(t, "kubectl"), "get", "--raw", agents+"?watch=true&resourceVersion="+revision)
	applyAgent(t, s, "four")
	resumed.Await(t, `"name":"four"`)
	got := resumed.Output()
	for name, want := range map[string]int{"one": 0, "two": 0, "three": 1, "four": 1} {
		if n := strings.Count(got, `"ADDED","object":{"kind":"Agent","apiVersion":"core.platform.ai/v1alpha1","metadata":{"name":"`+name+`"`); n != want {
			t.Errorf("the resumed watch delivered %s %d times, want %d:\n%s", name, n, want, got)
		}
	}
}

// TestSecondProcessRefused starts a second server on the folder of a running one.
func TestSecondProcessRefused(t *testing.T) {
	s := kit.StartServer(t, t.TempDir())
	r := s.Shell(t, "platform-standalone --secure-port 0 --data-dir "+s.DataDir)
	if r.Code == 0 || !strings.Contains(r.Output, s.DataDir) {
		t.Errorf("exit %d: %s", r.Code, r.Output)
	}
	s.MustShell(t, "kubectl get namespaces")
}
