// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
	"github.com/platform-ai/platform/pkg/approval"
	"github.com/platform-ai/platform/pkg/cli"
	"github.com/platform-ai/platform/test/kit"
	"github.com/platform-ai/platform/test/kit/host"
	"github.com/platform-ai/platform/test/kit/standalone"
)

// TestTokenWinsOverTheKubeconfig: whatever the kubeconfig says about its user, a token on the command line identifies the
// caller.
func TestTokenWinsOverTheKubeconfig(t *testing.T) {
	t.Parallel()
	s := standalone.Start(t)
	token := s.Token(t, "default", "viewer", "platform-viewer")
	changed := func(name string, change func(*clientcmdapi.AuthInfo)) string {
		c := kit.Must[*clientcmdapi.Config](t)(clientcmd.LoadFromFile(s.Kubeconfig))
		for _, u := range c.AuthInfos {
			change(u)
		}
		file := filepath.Join(t.TempDir(), name)
		if err := clientcmd.WriteToFile(*c, file); err != nil {
			t.Fatal(err)
		}
		return file
	}
	bad := filepath.Join(t.TempDir(), "token")
	if err := os.WriteFile(bad, []byte("bad"), 0o600); err != nil {
		t.Fatal(err)
	}
	for name, file := range map[string]string{
		"certificate": s.Kubeconfig,
		"token file":  changed("file", func(u *clientcmdapi.AuthInfo) { u.TokenFile = bad }),
		"password":    changed("password", func(u *clientcmdapi.AuthInfo) { u.Username, u.Password = "admin", "x" }),
		"plugin": changed("plugin", func(u *clientcmdapi.AuthInfo) {
			u.Exec = &clientcmdapi.ExecConfig{Command: "false", APIVersion: "client.authentication.k8s.io/v1", InteractiveMode: clientcmdapi.NeverExecInteractiveMode}
		}),
		"impersonation": changed("impersonation", func(u *clientcmdapi.AuthInfo) { u.Impersonate = "system:admin" }),
	} {
		out, errs, code := standalone.Command(t.Context(), file, "auth", "whoami", "-t", token)
		if code != 0 || !strings.HasPrefix(out, "user   system:serviceaccount:default:viewer\n") {
			t.Errorf("%s: exit code %d\n%s%s", name, code, out, errs)
		}
	}
	out, errs, code := standalone.Command(t.Context(), s.Kubeconfig, "-t", token, "task", "create", "--command", "true")
	if code != 1 || out != "" || !strings.Contains(errs, `User "system:serviceaccount:default:viewer" cannot create resource "tasks"`) {
		t.Errorf("a viewer creates a task: exit code %d\n%s%s", code, out, errs)
	}
	out, errs, code = standalone.Command(t.Context(), s.Kubeconfig, "auth", "whoami", "-o", "json")
	if code != 0 || !strings.Contains(out, `"system:masters"`) {
		t.Errorf("the administrator: exit code %d\n%s%s", code, out, errs)
	}
}

// TestWhatIsApprovedIsShown: the table and the command show the arguments before the decision, and nothing in the arguments
// can hide a part of them or control the terminal.
func TestWhatIsApprovedIsShown(t *testing.T) {
	t.Parallel()
	s := standalone.Start(t)
	admin := s.As(t, "")
	w := standalone.NewWaiting(t, s, admin, "rotate")
	preview := func(args string) func(*v1alpha1.ApprovalSpec) {
		return func(a *v1alpha1.ApprovalSpec) {
			a.TargetArgsPreview = &apiextensionsv1.JSON{Raw: approval.Preview([]byte(args))}
		}
	}
	plainArgs := "{\"command\":\"rm -rf /srv && echo \u202edone\x7f\"}"
	secretArgs := `{"password":"correct-horse-battery-staple","host":"db"}`
	plain, secret := w.Ask(plainArgs, preview(plainArgs)), w.Ask(secretArgs, preview(secretArgs))
	bare := w.Ask(`{}`)

	_, body := host.Get(t, s.Config(), "/apis/core.platform.ai/v1alpha1/namespaces/default/approvals", "application/json;as=Table;v=v1;g=meta.k8s.io")
	var table metav1.Table
	if err := json.Unmarshal([]byte(body), &table); err != nil {
		t.Fatal(err)
	}
	column := -1
	for i, c := range table.ColumnDefinitions {
		if c.Name == "Arguments" && c.Priority == 0 {
			column = i
		}
	}
	cells := map[any]any{}
	for _, r := range table.Rows {
		cells[r.Cells[0]] = r.Cells[column]
	}
	for id, want := range map[string]string{
		plain: `{"command":"rm -rf /srv && echo \u202edone\u007f"}`, secret: `{"host":"db","password":"[REDACTED]"}`, bare: "",
	} {
		if cells[id] != want {
			t.Errorf("the table shows %v, want %s", cells[id], want)
		}
	}

	// Without a terminal nothing is approved without --yes, whatever standard input holds.
	for _, word := range []string{"", "n\n", "y\n"} {
		var o, e bytes.Buffer
		code := cli.Main(t.Context(), "platform", []string{"--kubeconfig", s.Kubeconfig, "task", "approve", "rotate", plain}, cli.Streams{In: strings.NewReader(word), Out: &o, Err: &e})
		if code != 1 || !strings.Contains(e.String(), "add --yes") || !strings.Contains(o.String(), "exactly these") {
			t.Errorf("%q: exit code %d\n%s%s", word, code, &o, &e)
		}
	}
	out, errs, code := standalone.Command(t.Context(), s.Kubeconfig, "task", "approve", "rotate", plain[:8], "--yes")
	want := `  digest     sha256:` + w.Spec(plainArgs).TargetArgsDigest + `
  arguments  exactly these
    {
      "command": "rm -rf /srv && echo \u202edone\u007f"
    }
approved by `
	if code != 0 || !strings.HasPrefix(out, "task rotate asks to call exec\n  action     delete it\n") || !strings.Contains(out, want) {
		t.Errorf("exit code %d\n%s%s", code, out, errs)
	}

	// On a terminal nothing is decided without a yes.
	answer := func(word string, args ...string) (string, string, int) {
		var o, e bytes.Buffer
		code := cli.Main(t.Context(), "platform", append([]string{"--kubeconfig", s.Kubeconfig, "task", "approve", "rotate", secret}, args...),
			cli.Streams{In: strings.NewReader(word), Out: &o, Err: &e, Ask: true})
		return o.String(), e.String(), code
	}
	for _, word := range []string{"", "\n", "n\n", "yess\n"} {
		out, errs, code = answer(word)
		if code != 1 || !strings.Contains(out, "not all of them are shown") || !strings.Contains(out, `"password": "[REDACTED]"`) || !strings.Contains(errs, "no decision was made") {
			t.Errorf("answer %q: exit code %d\n%s%s", word, code, out, errs)
		}
	}
	out, errs, code = answer("y\n", "-o", "json")
	var a v1alpha1.Approval
	if err := json.Unmarshal([]byte(out), &a); err != nil || code != 0 || a.Status.State != v1alpha1.ApprovalApproved || !strings.Contains(errs, "approve this call? [y/N]") {
		t.Errorf("exit code %d, %v\n%s%s", code, err, out, errs)
	}

	out, errs, code = standalone.Command(t.Context(), s.Kubeconfig, "task", "deny", "rotate", "--reason", "not today")
	if code != 0 || !strings.Contains(out, "the requester does not show them") || !strings.Contains(out, "declined by ") {
		t.Errorf("exit code %d\n%s%s", code, out, errs)
	}
	got := kit.Must[*v1alpha1.Approval](t)(admin.Approvals("default").Get(t.Context(), bare, metav1.GetOptions{}))
	if got.Status.State != v1alpha1.ApprovalDeclined || got.Status.DecisionReason != "not today" {
		t.Errorf("%+v", got.Status)
	}
}
