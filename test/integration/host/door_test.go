// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package host

import (
	"bufio"
	"bytes"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"k8s.io/apiserver/pkg/authentication/user"

	"github.com/platform-ai/platform/pkg/server/door"
	"github.com/platform-ai/platform/test/kit"
	"github.com/platform-ai/platform/test/kit/standalone"
)

// doorSecret signs the requests to the door of the tests.
const doorSecret = "only-the-door-knows-this"

// webhook is a door as a code host needs one. It hands over what was delivered, once for each delivery.
func webhook(delivered chan<- string) door.Door {
	return door.Door{
		Name: "example", Paths: []string{"/webhooks/example", "/api/v1/examples/{namespace}/events"}, Bounds: door.Bounds{Body: 1000},
		Verify: func(r *http.Request, body []byte) (user.Info, error) {
			return &user.DefaultInfo{Name: "door:example"}, door.Signature{Header: "X-Hub-Signature-256", Prefix: "sha256="}.Check(r, body, []byte(doorSecret))
		},
		Handle: func(w http.ResponseWriter, r *http.Request, body []byte) {
			delivered <- r.PathValue("namespace") + " " + string(body)
			w.WriteHeader(http.StatusAccepted)
		},
	}
}

func signature(body string) string {
	mac := hmac.New(sha256.New, []byte(doorSecret))
	mac.Write([]byte(body))
	return "sha256=" + hex.EncodeToString(mac.Sum(nil))
}

// A door is open on both listeners, to callers that prove themselves and to nobody else. It is on record who came, and not what they
// brought.
func TestDoor(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	log, policy := filepath.Join(dir, "audit.log"), filepath.Join(dir, "policy.yaml")
	if err := os.WriteFile(policy, []byte("apiVersion: audit.k8s.io/v1\nkind: Policy\nomitStages: [RequestReceived]\nrules:\n- level: RequestResponse\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	delivered := make(chan string, 1)
	s := standalone.Start(t, func(o *standalone.Options) {
		o.Doors, o.AuditLog, o.AuditPolicy = []door.Door{webhook(delivered)}, log, policy
	})
	for _, base := range []string{s.URL, s.RESTURL} {
		for path, namespace := range map[string]string{"/webhooks/example?token=in-the-query": "", "/api/v1/examples/team/events": "team"} {
			const body = "what-was-delivered"
			c := s.Stranger(t).At(base)
			resp := c.With("X-Hub-Signature-256", signature(body)).Open(t.Context(), http.MethodPost, path, body)
			resp.Body.Close()
			if resp.StatusCode != http.StatusAccepted || <-delivered != namespace+" "+body {
				t.Errorf("%s%s: %s", base, path, resp.Status)
			}
			for _, wrong := range []*standalone.Client{c, c.With("X-Hub-Signature-256", signature("other")), s.REST(t, "default", "ed", "cluster-admin").At(base)} {
				resp := wrong.Open(t.Context(), http.MethodPost, path, body)
				resp.Body.Close()
				if resp.StatusCode != http.StatusUnauthorized {
					t.Errorf("%s%s, not signed: %s", base, path, resp.Status)
				}
			}
			resp = c.With("X-Hub-Signature-256", signature(strings.Repeat("x", 1001))).Open(t.Context(), http.MethodPost, path, strings.Repeat("x", 1001))
			resp.Body.Close()
			if resp.StatusCode != http.StatusRequestEntityTooLarge {
				t.Errorf("%s%s, too long: %s", base, path, resp.Status)
			}
		}
	}
	s.Stop(t)
	record := kit.Must[[]byte](t)(os.ReadFile(log))
	found := 0
	for line := range bytes.Lines(record) {
		var e struct {
			Verb, RequestURI string
			User             struct{ Username string }
			ResponseStatus   struct{ Code int }
		}
		if err := json.Unmarshal(line, &e); err != nil {
			t.Fatal(err)
		}
		if e.User.Username == "door:example" && e.Verb == "post" && e.ResponseStatus.Code == http.StatusAccepted {
			found++
		}
	}
	if found != 4 {
		t.Errorf("the audit log has %d of 4 deliveries", found)
	}
	for _, text := range []string{"in-the-query", "what-was-delivered", doorSecret, signature("what-was-delivered")} {
		if bytes.Contains(record, []byte(text)) {
			t.Errorf("the audit log has %q", text)
		}
	}
}

// Beside a door no byte of a stranger's body is read, whatever is near its path.
func TestBodiesBesideDoors(t *testing.T) {
	t.Parallel()
	s := standalone.Start(t, func(o *standalone.Options) { o.Doors = []door.Door{webhook(nil)} })
	for _, base := range []string{s.URL, s.RESTURL} {
		for _, path := range []string{
			"/api/v1/tasks", "/webhooks/example/", "/webhooks//example", "//webhooks/example", "/webhooks/%65xample", "/webhooks/example/../../apis/core.platform.ai/v1alpha1/namespaces/default/tasks",
			"/webhooks/example%2f..%2f..%2fapi/v1/tasks", "/api/v1/examples/a/b/events", "/api/v1/examples/a%2fb/events", "/api/v1/examples/../tasks",
		} {
			c := dial(t, s, base)
			_, _ = fmt.Fprintf(c, "POST %s HTTP/1.1\r\nHost: localhost\r\nX-Hub-Signature-256: %s\r\nContent-Length: 1000\r\n\r\n", path, signature(""))
			resp, err := http.ReadResponse(bufio.NewReader(c), nil)
			if err != nil {
				t.Fatalf("%s%s: %v", base, path, err)
			}
			if resp.StatusCode < 300 || !resp.Close {
				t.Errorf("%s%s: %s, closes %v", base, path, resp.Status, resp.Close)
			}
			resp.Body.Close()
			c.Close()
		}
	}
}
