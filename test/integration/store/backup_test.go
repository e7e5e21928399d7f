// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package store

import (
	"bytes"
	"errors"
	"io/fs"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
	"github.com/platform-ai/platform/test/kit"
	"github.com/platform-ai/platform/test/kit/standalone"
)

// TestBackupAndRestore: a server on a restored store answers every question as the one that made the backup.
func TestBackupAndRestore(t *testing.T) {
	t.Parallel()
	p := standalone.NewPlatform(t, "echo fine; exit 0\n")
	p.Run("a", func(s *v1alpha1.TaskSpec) { s.SessionRef = &v1alpha1.TaskSessionReference{Name: "s", Create: true} })
	p.AwaitPhase("a", v1alpha1.TaskSucceeded)
	k := p.Kubernetes(t)
	for path, content := range map[string]string{"result": "forty-two\n", "log": "line\n"} {
		if err := k.Discovery().RESTClient().Post().AbsPath("/apis/core.platform.ai/v1alpha1/namespaces/default/tasks/a/" + path).Body([]byte(content)).Do(t.Context()).Error(); err != nil {
			t.Fatal(path, err)
		}
	}
	kit.Must[*corev1.Secret](t)(k.CoreV1().Secrets("default").Create(t.Context(), &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Name: "key"}, StringData: map[string]string{"token": "only with the key file"},
	}, metav1.CreateOptions{}))
	file := filepath.Join(t.TempDir(), "x.tar")
	out, errs, code := standalone.Command(t.Context(), p.Kubeconfig, "backup", file)
	if code != 0 || !strings.HasPrefix(out, "backup of revision ") || !strings.HasSuffix(out, ": "+file+"\n") {
		t.Fatalf("backup: exit code %d\n%s%s", code, out, errs)
	}
	questions := backedUp(t, p.Server)
	p.Run("later")

	dir := t.TempDir()
	if err := os.CopyFS(filepath.Join(dir, "pki"), os.DirFS(filepath.Join(p.DataDir, "pki"))); err != nil {
		t.Fatal(err)
	}
	out, errs, code = restored(t, file, dir)
	if code != 0 || !strings.HasPrefix(out, "restored "+filepath.Join(dir, "store")+"\n") || !strings.Contains(out, "files      1\n") || errs != "" {
		t.Fatalf("restore: exit code %d\n%s%s", code, out, errs)
	}
	found := standalone.Start(t, func(o *standalone.Options) { o.DataDir = dir })
	if diff := cmp.Diff(questions, backedUp(t, found)); diff != "" {
		t.Errorf("the restored server answers (-before +after): %s", diff)
	}
	// Clients of the old server cannot resume from what they hold.
	for _, path := range []string{"tasks", "executionevents"} {
		err := found.Kubernetes(t).Discovery().RESTClient().Get().AbsPath("/apis/core.platform.ai/v1alpha1", path).
			Param("resourceVersion", "5").Param("resourceVersionMatch", "Exact").Param("limit", "1").Do(t.Context()).Error()
		if !apierrors.IsResourceExpired(err) {
			t.Errorf("%s at an old revision: %v", path, err)
		}
	}
}

// restored runs platform restore, which runs the server's program beside it.
func restored(t *testing.T, file, dir string) (out, errs string, code int) {
	t.Helper()
	var o, e bytes.Buffer
	cmd := exec.CommandContext(t.Context(), kit.Bin(t, "platform"), "restore", file, "--data-dir", dir)
	cmd.Stdout, cmd.Stderr = &o, &e
	if err := cmd.Run(); err != nil {
		if _, ok := errors.AsType[*exec.ExitError](err); !ok {
			t.Fatal(err)
		}
	}
	return o.String(), e.String(), cmd.ProcessState.ExitCode()
}

// backedUp reads everything that a backup must contain.
func backedUp(t *testing.T, s *standalone.Server) map[string]string {
	t.Helper()
	generatedAt := regexp.MustCompile(`"generatedAt":"[^"]*"`) // of a read model
	answers := map[string]string{}
	c := s.Kubernetes(t).Discovery().RESTClient()
	const ours = "/apis/core.platform.ai/v1alpha1/namespaces/default/"
	for _, path := range []string{
		ours + "tasks/a", ours + "tasks/a/events", ours + "tasks/a/result", ours + "tasks/a/log", ours + "tasks/a/trace",
		ours + "sessions/s", ours + "sessions/s/transcript", ours + "sessions/s/events",
		"/api/v1/namespaces/default/secrets/key", "/api/v1/namespaces/default", "/apis/rbac.authorization.k8s.io/v1/clusterroles/platform-backup",
	} {
		b, err := c.Get().AbsPath(path).Do(t.Context()).Raw()
		if err != nil {
			t.Errorf("%s: %v", path, err)
		}
		answers[path] = generatedAt.ReplaceAllString(string(b), "")
	}
	return answers
}

// TestBackupWithoutKeys: without the key file everything but the Secrets can be read, and they can be replaced.
func TestBackupWithoutKeys(t *testing.T) {
	t.Parallel()
	s := standalone.Start(t)
	secrets := s.Kubernetes(t).CoreV1().Secrets("default")
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: "key"}, StringData: map[string]string{"token": "closed"}}
	kit.Must[*corev1.Secret](t)(secrets.Create(t.Context(), secret, metav1.CreateOptions{}))
	kit.Must[any](t)(s.In(t, standalone.Tasks).Create(t.Context(), standalone.Task("a"), metav1.CreateOptions{}))
	file := filepath.Join(t.TempDir(), "x.tar")
	if out, errs, code := standalone.Command(t.Context(), s.Kubeconfig, "backup", file); code != 0 {
		t.Fatalf("backup: exit code %d\n%s%s", code, out, errs)
	}
	if b := kit.Must[[]byte](t)(os.ReadFile(file)); bytes.Contains(b, []byte("closed")) {
		t.Error("the backup has the value of a Secret")
	}
	dir := t.TempDir()
	if out, errs, code := restored(t, file, dir); code != 0 || !strings.Contains(errs, "only with the pki folder") {
		t.Fatalf("restore: exit code %d\n%s%s", code, out, errs)
	}
	found := standalone.Start(t, func(o *standalone.Options) { o.DataDir = dir })
	kit.Must[any](t)(found.In(t, standalone.Tasks).Get(t.Context(), "a", metav1.GetOptions{}))
	secrets = found.Kubernetes(t).CoreV1().Secrets("default")
	if got, err := secrets.Get(t.Context(), "key", metav1.GetOptions{}); err == nil {
		t.Errorf("without the key the Secret is %v", got.Data)
	}
	ignore := true
	if err := secrets.Delete(t.Context(), "key", metav1.DeleteOptions{IgnoreStoreReadErrorWithClusterBreakingPotential: &ignore}); err != nil {
		t.Errorf("it cannot be deleted: %v", err)
	}
	kit.Must[*corev1.Secret](t)(secrets.Create(t.Context(), secret, metav1.CreateOptions{}))
}

// TestBackupIsForItsRole: a backup contains everything that is stored, so only the administrator and platform-backup get
// it.
func TestBackupIsForItsRole(t *testing.T) {
	t.Parallel()
	s := standalone.Start(t)
	k := s.Kubernetes(t)
	for _, tc := range []struct {
		role string
		want int
	}{{"", http.StatusForbidden}, {"admin", http.StatusForbidden}, {"platform-operator", http.StatusForbidden}, {"platform-backup", http.StatusOK}} {
		account := "account" + tc.role
		token := s.Token(t, "default", account, "")
		if tc.role != "" {
			kit.Must[*rbacv1.ClusterRoleBinding](t)(k.RbacV1().ClusterRoleBindings().Create(t.Context(), &rbacv1.ClusterRoleBinding{
				ObjectMeta: metav1.ObjectMeta{Name: account},
				RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: tc.role},
				Subjects:   []rbacv1.Subject{{Kind: "ServiceAccount", Name: account, Namespace: "default"}},
			}, metav1.CreateOptions{}))
		}
		c := kit.Must[*kubernetes.Clientset](t)(kubernetes.NewForConfig(&rest.Config{
			Host: s.URL, BearerToken: token, TLSClientConfig: rest.TLSClientConfig{CAData: s.Admin.CAData}, QPS: -1,
		}))
		status := 0
		raw, err := c.Discovery().RESTClient().Get().AbsPath("/backup").Do(t.Context()).StatusCode(&status).Raw()
		if status != tc.want || (status == http.StatusOK) != bytes.HasPrefix(raw, []byte("platform-backup.json")) {
			t.Errorf("role %q: status %d, want %d (%v)", tc.role, status, tc.want, err)
		}
		if tc.role == "platform-backup" {
			if err := c.Discovery().RESTClient().Post().AbsPath("/backup").Do(t.Context()).Error(); !apierrors.IsForbidden(err) {
				t.Errorf("POST: %v", err)
			}
			if _, err := c.CoreV1().Secrets("default").List(t.Context(), metav1.ListOptions{}); !apierrors.IsForbidden(err) {
				t.Errorf("the role reads Secrets: %v", err)
			}
		}
	}
	err := k.Discovery().RESTClient().Post().AbsPath("/backup").Do(t.Context()).Error()
	var status apierrors.APIStatus
	if !errors.As(err, &status) || status.Status().Code != http.StatusMethodNotAllowed {
		t.Errorf("POST of the administrator: %v", err)
	}
	if out, errs, code := standalone.Command(t.Context(), s.Kubeconfig, "backup", "--as", "nobody", filepath.Join(t.TempDir(), "x.tar")); code != 1 || !strings.Contains(errs, "it takes the role platform-backup") {
		t.Errorf("exit code %d\n%s%s", code, out, errs)
	}
}

func TestBackupCommand(t *testing.T) {
	t.Parallel()
	s := standalone.Start(t)
	dir := t.TempDir()
	file := filepath.Join(dir, "x.tar")
	run := func(args ...string) (string, string, int) {
		t.Helper()
		return standalone.Command(t.Context(), s.Kubeconfig, args...)
	}
	if _, errs, code := run("backup", file); code != 0 {
		t.Fatal(errs)
	}
	first := kit.Must[[]byte](t)(os.ReadFile(file))
	if _, errs, code := run("backup", file); code != 1 || !strings.Contains(errs, "is there already") {
		t.Errorf("over a file: exit code %d %s", code, errs)
	}
	if got := kit.Must[[]byte](t)(os.ReadFile(file)); !bytes.Equal(got, first) {
		t.Error("the file was replaced")
	}
	s.Namespaces(t, "more")
	if _, errs, code := run("backup", file, "--force"); code != 0 {
		t.Errorf("--force: %s", errs)
	}
	if got := kit.Must[[]byte](t)(os.ReadFile(file)); bytes.Equal(got, first) {
		t.Error("the file was not replaced")
	}
	out, errs, code := run("backup", "-")
	if code != 0 || !strings.HasPrefix(out, "platform-backup.json\x00") || !strings.Contains(errs, "backup of revision") {
		t.Errorf("to standard output: exit code %d, %d bytes\n%s", code, len(out), errs)
	}
	if _, errs, code := run("backup", filepath.Join(dir, "none", "x.tar")); code != 1 || !strings.Contains(errs, "no such file") {
		t.Errorf("no folder: exit code %d %s", code, errs)
	}
	if _, errs, code := restored(t, file, s.DataDir); code != 1 || !strings.Contains(errs, "there is a store already") {
		t.Errorf("restore over the server's store: exit code %d %s", code, errs)
	}
	if err := os.WriteFile(filepath.Join(dir, "cut.tar"), first[:len(first)/2], 0o600); err != nil {
		t.Fatal(err)
	}
	if _, errs, code := restored(t, filepath.Join(dir, "cut.tar"), filepath.Join(dir, "new")); code != 1 || !strings.Contains(errs, "cut off") {
		t.Errorf("restore of half a backup: exit code %d %s", code, errs)
	}
	if _, err := os.Stat(filepath.Join(dir, "new", "store")); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("half a store: %v", err)
	}
	if got := kit.Must[[]os.DirEntry](t)(os.ReadDir(dir)); slices.ContainsFunc(got, func(e os.DirEntry) bool { return strings.HasSuffix(e.Name(), ".partial") }) {
		t.Errorf("left behind: %v", got)
	}
}
