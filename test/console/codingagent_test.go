// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package console

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
	"github.com/platform-ai/platform/test/console/scene"
	"github.com/platform-ai/platform/test/githost"
	"github.com/platform-ai/platform/test/kit"
	"github.com/platform-ai/platform/test/kit/host"
	"github.com/platform-ai/platform/test/kit/standalone"
)

// hostileName is the name of a file, which the shell gets within single quotes.
const hostileName = `<img src=x onerror=window.pwned=1> "é"`

// TestCodingAgent: a coding agent asks for what it wants to do in a repository, somebody decides in the console, and sees there what it
// changed and what became of that. Nothing that a repository, an agent or a code host says is more than text.
func TestCodingAgent(t *testing.T) {
	t.Parallel()
	kit.Needs(t, kit.NPM, kit.Browser)
	h := githost.New(t, "")
	h.PushToken = "pt-0a1b2c3d4e5f66778899"
	h.Create(t, "shop")
	h.Commit(t, "shop", "main", map[string]string{"greet.sh": "set -e\necho \"Helo, ${1:-world}!\"\n", "old.txt": "old\n", "run.sh": "true\n", "many.txt": strings.Repeat("a line\n", 1000)})
	h.Commit(t, "shop", "elsewhere", map[string]string{"other": "1\n"})
	agent, workspace := kit.Bin(t, "scriptedagent"), kit.Bin(t, "platform-workspace")
	p, _ := standalone.WithModel(t, waiting, func(o *standalone.Options) {
		o.WorkspaceBinary, o.RepositoryAllow, o.AgentPrograms = workspace, []string{h.Address()}, []string{"codex=" + agent}
	})
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: "pusher"}, StringData: map[string]string{"token": h.PushToken}}
	kit.Must[*corev1.Secret](t)(p.Kubernetes(t).CoreV1().Secrets("default").Create(t.Context(), secret, metav1.CreateOptions{}))
	kit.Must[*v1alpha1.Agent](t)(p.API().Agents("default").Create(t.Context(), &v1alpha1.Agent{ObjectMeta: metav1.ObjectMeta{Name: "mender"}, Spec: v1alpha1.AgentSpec{
		Runtime: &v1alpha1.AgentCodingRuntime{Type: v1alpha1.RuntimeCodex}, Coordination: &v1alpha1.AgentCoordination{ApprovalRequiredTools: []string{"edit"}},
	}}, metav1.CreateOptions{}))
	task := func(name, branch string, prompt ...string) {
		p.Run(name, func(s *v1alpha1.TaskSpec) {
			s.Type, s.Command, s.AgentRef = v1alpha1.TaskTypeAgent, nil, &v1alpha1.NamespacedReference{Name: "mender"}
			s.Prompt = strings.Join(prompt, "\n")
			s.Workspace = &v1alpha1.TaskWorkspace{
				GitRepo: h.Location("shop"), Branch: "main", Intent: v1alpha1.WorkspaceWrite, PushBranch: branch, PublicationCredentialRef: &v1alpha1.WorkspaceCredentialReference{Name: "pusher"},
			}
		})
	}
	task("mends", "mend-greeting", "Correct the spelling of the greeting.", `do: replace greet.sh Helo => Hello`,
		"do: shell rm old.txt; chmod +x run.sh; printf 'a\\0b' > logo.bin; : > empty; sed -i s/a/the/ many.txt; cat > '"+hostileName+"' <<'E'\\n"+hostile[0]+"\\ndiff --git a/x b/x\\n--- a/x\\nE")
	task("collides", "elsewhere", "Write a note.", "do: touch note.txt a note")
	p.AwaitPhase("collides", v1alpha1.TaskFailed)
	kit.Await(t, "the agent asks", func() bool {
		list := kit.Must[*v1alpha1.ApprovalList](t)(p.API().Approvals("default").List(t.Context(), metav1.ListOptions{FieldSelector: "status.state=pending"}))
		return len(list.Items) == 1
	})
	// No code host answers with such an address, so that of a pull request is written here.
	receipt := func(name, url string) {
		now := kit.Must[*v1alpha1.Task](t)(p.Tasks().Get(t.Context(), name, metav1.GetOptions{}))
		now.Status.Delivery.PRReceipt = &v1alpha1.PullRequestReceipt{ID: "7", Number: 7, URL: url, State: "open", BaseBranch: "main"}
		kit.Must[*v1alpha1.Task](t)(p.Tasks().UpdateStatus(t.Context(), now, metav1.UpdateOptions{}))
	}
	receipt("collides", "javascript:window.pwned=1")
	token := p.Token(t, "default", "ann", "platform-operator")
	p.Bind(t, "default", "platform-approver", host.Account("default", "ann"))
	env := []string{"BASE=" + p.RESTURL, "TOKEN=" + token, "SHOTS=" + pictures(t), "NAME=" + hostileName}
	if scene.Drive(t, root, "codingagent.mjs", 3, env...); t.Failed() {
		return // and nobody has decided
	}
	p.AwaitPhase("mends", v1alpha1.TaskSucceeded)
	receipt("mends", "https://git.example.com/team/shop/pulls/7")
	scene.Drive(t, root, "delivered.mjs", 2, env...)
	if got := h.Git(t, "shop", "", "show", "mend-greeting:greet.sh"); !strings.Contains(got, "Hello, ") {
		t.Errorf("the branch has %q", got)
	}
}
