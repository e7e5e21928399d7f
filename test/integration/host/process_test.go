// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package host

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

	"github.com/platform-ai/platform/pkg/storage/engine"
	"github.com/platform-ai/platform/test/kit"
	"github.com/platform-ai/platform/test/kit/host"
	"github.com/platform-ai/platform/test/kit/standalone"
)

// safeBuffer is written by the server and read by the test.
type safeBuffer struct {
	mu sync.Mutex // guards b
	b  bytes.Buffer
}

func (s *safeBuffer) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.b.Write(p)
}

func (s *safeBuffer) String() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.b.String()
}

func TestReadyMessageSaysWhatToDoNext(t *testing.T) {
	t.Parallel()
	out := &safeBuffer{}
	s := standalone.Start(t, func(o *standalone.Options) { o.Out = out })
	for _, want := range []string{"is ready after", s.URL, "from this machine only", "export KUBECONFIG=" + s.Kubeconfig, s.DataDir} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("the ready message lacks %q:\n%s", want, out)
		}
	}
	info, err := os.Stat(s.Kubeconfig)
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("kubeconfig: %v %v", info.Mode(), err)
	}
}

func TestSecondServerOnTheSameFolderIsRefused(t *testing.T) {
	t.Parallel()
	s := standalone.Start(t)
	o := standalone.NewOptions()
	o.DataDir, o.Port, o.LockTimeout = s.DataDir, 0, time.Millisecond
	err := standalone.Run(t.Context(), *o)
	if !errors.Is(err, engine.ErrLocked) || !strings.Contains(err.Error(), s.DataDir) || !strings.Contains(err.Error(), "--data-dir") {
		t.Errorf("second server: %v", err)
	}
}

func TestUsedPortIsRefused(t *testing.T) {
	t.Parallel()
	s := standalone.Start(t)
	o := standalone.NewOptions()
	o.DataDir = t.TempDir()
	u := kit.Must[*url.URL](t)(url.Parse(s.URL))
	o.Port = kit.Must[int](t)(strconv.Atoi(u.Port()))
	if err := standalone.Run(t.Context(), *o); err == nil || !strings.Contains(err.Error(), "--secure-port") {
		t.Errorf("used port: %v", err)
	}
}

func TestRestartKeepsObjectsKeysAndIdentities(t *testing.T) {
	t.Parallel()
	s := standalone.Start(t)
	ctx, k := t.Context(), s.Kubernetes(t)
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: "key"}, StringData: map[string]string{"api-key": "correct-horse-battery"}}
	stored := kit.Must[*corev1.Secret](t)(k.CoreV1().Secrets("default").Create(ctx, secret, metav1.CreateOptions{}))
	before := kit.Must[[]byte](t)(os.ReadFile(filepath.Join(s.DataDir, "pki", "ca.crt")))
	s.Restart(t)
	again := kit.Must[*corev1.Secret](t)(s.Kubernetes(t).CoreV1().Secrets("default").Get(ctx, "key", metav1.GetOptions{}))
	if again.UID != stored.UID || again.ResourceVersion != stored.ResourceVersion || string(again.Data["api-key"]) != "correct-horse-battery" {
		t.Errorf("after a restart: %s at %s, was %s at %s", again.UID, again.ResourceVersion, stored.UID, stored.ResourceVersion)
	}
	if after := kit.Must[[]byte](t)(os.ReadFile(filepath.Join(s.DataDir, "pki", "ca.crt"))); !bytes.Equal(before, after) {
		t.Error("the certificate authority was made again")
	}
	s.Stop(t)
	err := filepath.WalkDir(s.DataDir, func(path string, d os.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		content, err := os.ReadFile(path)
		if bytes.Contains(content, []byte("correct-horse")) || bytes.Contains(content, []byte("Y29ycmVjdC1ob3JzZ")) {
			t.Errorf("%s holds the value of a Secret", path)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}

// Point 12: controllers that fail are started again, and the API keeps answering meanwhile.
func TestAPIOutlivesControllers(t *testing.T) {
	t.Parallel()
	attempts := make(chan *rest.Config)
	s := standalone.Start(t, func(o *standalone.Options) {
		o.Controllers = func(ctx context.Context, c *rest.Config) error {
			select {
			case attempts <- c:
				return errors.New("a controller failed")
			case <-ctx.Done():
				return nil
			}
		}
	})
	for range 2 {
		c := <-attempts
		if code, body := host.Get(t, c, "/api/v1/namespaces", ""); code != 200 {
			t.Errorf("as a controller: %d %s", code, body)
		}
		if code, body := host.Get(t, s.Admin, "/readyz", ""); code != 200 {
			t.Errorf("readyz while no controller runs: %d %s", code, body)
		}
	}
}

// Point 10: who did what is on record.
func TestAudit(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	log, policy := filepath.Join(dir, "audit.log"), filepath.Join(dir, "policy.yaml")
	rules := "apiVersion: audit.k8s.io/v1\nkind: Policy\nomitStages: [RequestReceived]\nrules:\n- level: Metadata\n"
	if err := os.WriteFile(policy, []byte(rules), 0o600); err != nil {
		t.Fatal(err)
	}
	s := standalone.Start(t, func(o *standalone.Options) { o.AuditLog, o.AuditPolicy = log, policy })
	cm := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "audited"}}
	kit.Must[*corev1.ConfigMap](t)(s.Kubernetes(t).CoreV1().ConfigMaps("default").Create(t.Context(), cm, metav1.CreateOptions{}))
	s.Stop(t)
	found := false
	for line := range bytes.Lines(kit.Must[[]byte](t)(os.ReadFile(log))) {
		var e struct {
			Verb      string
			User      struct{ Username string }
			ObjectRef struct{ Resource, Namespace, Name string }
		}
		if err := json.Unmarshal(line, &e); err != nil {
			t.Fatal(err)
		}
		found = found || e.Verb == "create" && e.User.Username == "platform-admin" && e.ObjectRef.Name == "audited" && e.ObjectRef.Resource == "configmaps"
	}
	if !found {
		t.Error("the audit log does not tell who created the ConfigMap")
	}
}

func TestBadOptionsAreRefused(t *testing.T) {
	t.Parallel()
	for name, change := range map[string]func(*standalone.Options){
		"--bind-address": func(o *standalone.Options) { o.BindAddress = "localhost" },
		"--secure-port":  func(o *standalone.Options) { o.Port = 70000 },
		"--audit-log":    func(o *standalone.Options) { o.AuditLog = "x" },
	} {
		o := standalone.NewOptions()
		o.DataDir = t.TempDir()
		change(o)
		if err := standalone.Run(t.Context(), *o); err == nil || !strings.Contains(err.Error(), name) {
			t.Errorf("%s: %v", name, err)
		}
	}
}
