// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package pullrequest

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
	"github.com/platform-ai/platform/test/forge"
	"github.com/platform-ai/platform/test/kit"
	"github.com/platform-ai/platform/test/kit/standalone"
)

const changingScript = `
models: [scripted-1]
turns:
- name: change
  match: {turn: 1, lastRole: user}
  reply: {toolCalls: [{name: code_exec, arguments: {language: bash, code: "echo more >> README.md; mkdir -p src; echo x > src/new"}}]}
- name: answer
  match: {turn: 2, lastRole: tool}
  reply: {text: "changed"}
`

// TestPullRequest: what a model's program changes in a repository of a real Gitea becomes a branch and one pull request, each with its own
// credential, of users who may do no more. A title that is a secret never gets there.
func TestPullRequest(t *testing.T) {
	t.Parallel()
	f := forge.Start(t)
	r := f.Repository(t, "owner", "shop", map[string]string{"README.md": "a shop\n"})
	tokens := r.Tokens(t)
	program := kit.Bin(t, "platform-workspace")
	p, _ := standalone.WithModel(t, changingScript, func(o *standalone.Options) {
		o.WorkspaceBinary, o.RepositoryAllow = program, []string{f.Address()}
	})
	for name, token := range map[string]string{"reader": tokens.Read, "pusher": tokens.Push, "opener": tokens.PullRequests} {
		secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: name}, StringData: map[string]string{"token": token}}
		kit.Must[*corev1.Secret](t)(p.Kubernetes(t).CoreV1().Secrets("default").Create(t.Context(), secret, metav1.CreateOptions{}))
	}
	ref := func(name string) *v1alpha1.WorkspaceCredentialReference {
		return &v1alpha1.WorkspaceCredentialReference{Name: name}
	}
	run := func(name string, change func(*v1alpha1.TaskSpec)) {
		p.OnModel(name, func(s *v1alpha1.TaskSpec) {
			s.Prompt, s.AI.Tools = "Mend the shop\nand say so", []string{"code_exec"}
			s.Workspace = &v1alpha1.TaskWorkspace{
				GitRepo: r.URL, Intent: v1alpha1.WorkspaceWrite, CreatePR: true, ReadCredentialRef: ref("reader"), PublicationReadCredentialRef: ref("reader"), PublicationCredentialRef: ref("pusher"), ForgeCredentialRef: ref("opener"),
			}
			change(s)
		})
	}
	run("mend", func(*v1alpha1.TaskSpec) {})
	task := p.AwaitPhase("mend", v1alpha1.TaskSucceeded)
	d := task.Status.Delivery
	if d.State != v1alpha1.DeliveryVerifiedExact || d.PRReceipt == nil || d.PRReceipt.HeadSHA != d.VerifiedRemoteSHA || d.PRReceipt.HeadBranch != d.Branch || d.PRReceipt.BaseBranch != "main" || d.PRReceipt.State != "open" {
		t.Fatalf("delivery %+v, receipt %+v: %s", d, d.PRReceipt, task.Status.Message)
	}
	all := r.PullRequests(t)
	if len(all) != 1 || all[0].Index != d.PRReceipt.Number || all[0].Title != "Mend the shop" || all[0].Poster.UserName != "opener" || !strings.Contains(all[0].Body, "default/mend") || all[0].HTMLURL != d.PRReceipt.URL {
		t.Errorf("pull requests %+v, receipt %+v", all[0], d.PRReceipt)
	}
	if head := r.Head(d.Branch); head != d.VerifiedRemoteSHA {
		t.Errorf("the branch is at %s", head)
	}
	said, errs, code := standalone.Command(t.Context(), p.Kubeconfig, "task", "delivery", "mend")
	if code != 0 || !strings.Contains(said, "Pull request:") || !strings.Contains(said, d.PRReceipt.URL+" (open)") {
		t.Errorf("%s%s", said, errs)
	}
	// The report of usage has it: the publication's receipt says that the task opened it.
	work := `{"metadata":{"annotations":{"platform.ai/github-repository":"owner/shop","platform.ai/monitor-item-kind":"issue","platform.ai/monitor-item-number":"7"}}}`
	kit.Must[*v1alpha1.Task](t)(p.Tasks().Patch(t.Context(), "mend", types.MergePatchType, []byte(work), metav1.PatchOptions{}))
	p.REST(t, "default", "viewer", "platform-viewer").Get("/api/v1/usage").Want(t, 200, `"prsOpened":1`, `"prsMerged":0`)
	run("closed", func(s *v1alpha1.TaskSpec) { s.Workspace.ForgeCredentialRef = ref("reader") })
	if task := p.AwaitPhase("closed", v1alpha1.TaskFailed); task.Status.Delivery.State != v1alpha1.DeliveryVerifiedExact || !strings.Contains(task.Status.Message, "there is no open pull request") {
		t.Errorf("with a credential that may only read: %+v: %s", task.Status.Delivery, task.Status.Message)
	}
	run("base", func(s *v1alpha1.TaskSpec) { s.Workspace.PRBaseBranch = "none" })
	if task := p.AwaitPhase("base", v1alpha1.TaskFailed); !strings.Contains(task.Status.Message, "BaseMissing") {
		t.Errorf("without a base: %s", task.Status.Message)
	}
	run("secret", func(s *v1alpha1.TaskSpec) {
		s.Workspace.PRTitle = "use " + "ghp_" + strings.Repeat("a1B2c3D4e5", 4)[:36]
	})
	if task := p.AwaitPhase("secret", v1alpha1.TaskFailed); task.Status.Delivery.State != v1alpha1.DeliveryConflict || r.Head(task.Status.Delivery.Branch) != "" {
		t.Errorf("a title that is a secret: %+v: %s", task.Status.Delivery, task.Status.Message)
	}
	if n := len(r.PullRequests(t)); n != 1 {
		t.Errorf("%d pull requests", n)
	}
}
