// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package host

import (
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

	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
	hook "github.com/platform-ai/platform/pkg/server/webhook"
	"github.com/platform-ai/platform/test/kit"
	"github.com/platform-ai/platform/test/kit/standalone"
)

const hookSecret = "the-code-host-knows-this"

// hooked is a server whose webhook makes tasks.
type hooked struct {
	*standalone.Platform
	client *standalone.Client
}

func newHooked(t *testing.T, change func(*standalone.Options)) *hooked {
	t.Helper()
	p := standalone.NewPlatform(t, "", func(o *standalone.Options) {
		o.Webhook.Secret = hookSecret
		o.Webhook.Triggers = hook.Triggers{Agent: "coder", Agents: map[string]string{"plain": "talker", "nobody": "absent"}, Secret: "git"}
		if change != nil {
			change(o)
		}
	})
	for name, runtime := range map[string]*v1alpha1.AgentCodingRuntime{"coder": {Type: v1alpha1.RuntimeClaude}, "talker": nil} {
		kit.Must[*v1alpha1.Agent](t)(p.API().Agents("default").Create(t.Context(), &v1alpha1.Agent{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: v1alpha1.AgentSpec{Runtime: runtime}}, metav1.CreateOptions{}))
	}
	return &hooked{p, p.Stranger(t)}
}

// delivery is one delivery and what is to come of it.
type delivery struct {
	id, hook, event string
	gitea           bool
	body            string
	// signature replaces the right one.
	signature string
}

// replied is what the server answers.
type replied struct {
	Code                                      int
	Status, Message, Reason, TaskName, Action string
	MonitorRunsQueued, MatchedMonitors        int32
	MonitorRunsCached, MonitorRunsSkipped     int32
	RunIDs, CommandIDs                        []string
	Namespace, Label, DeliveryID              string
}

func (h *hooked) deliver(d delivery) (r replied) {
	h.T.Helper()
	mac := hmac.New(sha256.New, []byte(hookSecret))
	mac.Write([]byte(d.body))
	signed := "sha256=" + hex.EncodeToString(mac.Sum(nil))
	if d.signature != "" {
		signed = d.signature
	}
	c := h.client.With("X-Hub-Signature-256", signed).With("X-GitHub-Event", d.event).With("X-GitHub-Delivery", d.id)
	if d.gitea {
		c = c.With("X-Gitea-Event", d.event)
	} else {
		c = c.With("X-GitHub-Hook-ID", d.hook)
	}
	resp := c.Open(h.T.Context(), http.MethodPost, "/webhooks/github", d.body)
	defer resp.Body.Close()
	if err := json.NewDecoder(resp.Body).Decode(&r); err != nil && resp.StatusCode < 300 {
		h.T.Fatalf("%s: %v", resp.Status, err)
	}
	r.Code = resp.StatusCode
	return r
}

// issueLabeled is what GitHub delivers when a label is set on an issue.
func issueLabeled(label, updated string) string {
	return fmt.Sprintf(`{"action":"labeled","label":{"name":%q},"issue":{"number":7,"title":"No door","body":"The shop has no door.","html_url":"https://github.com/ada/shop/issues/7","updated_at":%q,"labels":[{"name":%q}]},
"repository":{"full_name":"ada/shop","html_url":"https://github.com/ada/shop","default_branch":"main"},"sender":{"login":"ada","type":"User"}}`, label, updated, label)
}

func pullLabeled(label string) string {
	return fmt.Sprintf(`{"action":"labeled","number":8,"label":{"name":%q},"pull_request":{"number":8,"title":"A door","html_url":"https://github.com/ada/shop/pull/8","labels":[],"head":{"ref":"door","sha":%q,"repo":{"full_name":"ada/shop"}},"base":{"ref":"main","sha":%q}},
"repository":{"full_name":"ada/shop","html_url":"https://github.com/ada/shop","default_branch":"main"},"sender":{"login":"ada","type":"User"}}`, label, strings.Repeat("a", 40), strings.Repeat("b", 40))
}

// TestLabelTasks: a label makes a task once, whoever delivers that and however often. Each delivery is on record, and a person can have it
// decided again.
func TestLabelTasks(t *testing.T) {
	t.Parallel()
	h := newHooked(t, nil)
	first := h.deliver(delivery{id: "1", hook: "10", event: "issues", body: issueLabeled("agent:implement", "1")})
	if first.Code != http.StatusCreated || first.Status != "created" || first.Action != "implement" || first.Label != "agent:implement" || first.Namespace != "default" {
		t.Fatalf("%+v", first)
	}
	task := kit.Must[*v1alpha1.Task](t)(h.Tasks().Get(t.Context(), first.TaskName, metav1.GetOptions{}))
	w := task.Spec.Workspace
	if task.Spec.Type != v1alpha1.TaskTypeAgent || task.Spec.AgentRef.Name != "coder" || *task.Spec.AgentRuntime.MaxTurns != 100 || task.Spec.Timeout.Value().Minutes() != 30 ||
		w.Intent != v1alpha1.WorkspaceWrite || w.GitRepo != "https://github.com/ada/shop" || !w.CreatePR || w.PRBaseBranch != "main" || w.PublicationCredentialRef.Name != "git" || !strings.Contains(task.Spec.Prompt, "The shop has no door.") {
		t.Errorf("%+v %+v", task.Spec, w)
	}
	for key, want := range map[string]string{"created-by": "github-label", "github-event": "issues", "github-action": "implement", "github-repository": "ada.shop", "github-target": "issue", "github-number": "7"} {
		if got := task.Labels["platform.ai/"+key]; got != want {
			t.Errorf("label %s is %q", key, got)
		}
	}
	for key, want := range map[string]string{"delivery": first.DeliveryID, "label": "agent:implement", "action": "implement", "repository": "ada/shop", "url": "https://github.com/ada/shop/issues/7", "sender": "ada", "number": "7"} {
		if got := task.Annotations["platform.ai/github-"+key]; got != want {
			t.Errorf("annotation %s is %q", key, got)
		}
	}
	if by := task.Annotations[v1alpha1.AnnotationRequestedBy]; by != hook.User {
		t.Errorf("the task was requested by %q", by)
	}
	for name, c := range map[string]struct {
		d      delivery
		code   int
		status string
	}{
		"the same again":                     {delivery{id: "1", hook: "10", event: "issues", body: issueLabeled("agent:implement", "1")}, 202, "duplicate"},
		"the same body under another id":     {delivery{id: "2", hook: "10", event: "issues", body: issueLabeled("agent:implement", "1")}, 202, "duplicate"},
		"the same event by another hook":     {delivery{id: "1", hook: "11", event: "issues", body: issueLabeled("agent:implement", "1 ")}, 202, "duplicate"},
		"the label again, a moment later":    {delivery{id: "3", hook: "10", event: "issues", body: issueLabeled("agent:implement", "2")}, 201, "created"},
		"a label of no agent":                {delivery{id: "4", hook: "10", event: "issues", body: issueLabeled("bug", "1")}, 202, "ignored"},
		"only the prefix":                    {delivery{id: "5", hook: "10", event: "issues", body: issueLabeled("agent:", "1")}, 202, "ignored"},
		"another event":                      {delivery{id: "6", hook: "10", event: "push", body: "not even JSON"}, 202, "ignored"},
		"a ping":                             {delivery{id: "7", hook: "10", event: "ping", body: "{}"}, 202, "ok"},
		"no JSON":                            {delivery{id: "8", hook: "10", event: "issues", body: "{"}, 400, "error"},
		"no target":                          {delivery{id: "9", hook: "10", event: "issues", body: `{"action":"labeled"}`}, 400, "error"},
		"review of an issue":                 {delivery{id: "10", hook: "10", event: "issues", body: issueLabeled("agent:review", "1")}, 202, "ignored"},
		"review of a pull request":           {delivery{id: "11", hook: "10", event: "pull_request", body: pullLabeled("agent:review")}, 201, "created"},
		"an agent that does not exist":       {delivery{id: "12", hook: "10", event: "issues", body: issueLabeled("agent:nobody", "1")}, 400, "error"},
		"an agent without a runtime":         {delivery{id: "13", hook: "10", event: "issues", body: issueLabeled("agent:plain", "1")}, 400, "error"},
		"another label in Gitea, of old":     {delivery{id: "14", gitea: true, event: "issues", body: strings.Replace(issueLabeled("agent:look", "1"), `"labeled"`, `"label_updated"`, 1)}, 201, "created"},
		"another signature":                  {delivery{id: "15", hook: "10", event: "issues", body: issueLabeled("agent:implement", "9"), signature: "sha256=" + strings.Repeat("0", 64)}, 401, ""},
		"the signature of another algorithm": {delivery{id: "16", hook: "10", event: "issues", body: issueLabeled("agent:implement", "9"), signature: "sha1=" + strings.Repeat("0", 40)}, 401, ""},
	} {
		if got := h.deliver(c.d); got.Code != c.code || c.status != "" && got.Status != c.status {
			t.Errorf("%s: %+v", name, got)
		}
	}
	tasks := kit.Must[*v1alpha1.TaskList](t)(h.Tasks().List(t.Context(), metav1.ListOptions{LabelSelector: "platform.ai/created-by=github-label"}))
	if len(tasks.Items) != 4 {
		t.Errorf("%d tasks", len(tasks.Items))
	}
	for i := range tasks.Items {
		if w := tasks.Items[i].Spec.Workspace; tasks.Items[i].Labels["platform.ai/github-action"] == "review" && (w.Intent != v1alpha1.WorkspaceRead || w.Ref != strings.Repeat("a", 40)) {
			t.Errorf("%+v", w)
		}
	}
	h.replay(t, first)
}

// replay has a delivery decided again.
func (h *hooked) replay(t *testing.T, first replied) {
	t.Helper()
	rows := h.API().CodeHostDeliveries("default")
	row := kit.Must[*v1alpha1.CodeHostDelivery](t)(rows.Get(t.Context(), first.DeliveryID, metav1.GetOptions{}))
	if row.Status.State != v1alpha1.DeliveryProcessed || row.Status.Redeliveries != 1 || len(row.Status.Tasks) != 1 || row.Spec.Body != "The shop has no door." {
		t.Errorf("%+v", row)
	}
	path := "/apis/core.platform.ai/v1alpha1/namespaces/default/codehostdeliveries/" + first.DeliveryID + "/replay"
	const body = `{"apiVersion":"core.platform.ai/v1alpha1","kind":"CodeHostDelivery"}`
	if a := h.REST(t, "default", "ed", "platform-editor").At(h.URL).Post(path, body); a.Code != http.StatusForbidden {
		t.Errorf("an editor replays: %d", a.Code)
	}
	if a := h.REST(t, "default", "op", "platform-operator").At(h.URL).Post(path, body); a.Code != http.StatusCreated {
		t.Fatalf("an operator replays: %+v", a)
	}
	kit.Await(t, "the delivery is decided again", func() bool {
		row = kit.Must[*v1alpha1.CodeHostDelivery](t)(rows.Get(t.Context(), first.DeliveryID, metav1.GetOptions{}))
		return row.Status.State != v1alpha1.DeliveryReceived
	})
	if len(row.Status.Tasks) != 1 || row.Status.Tasks[0] == first.TaskName || row.Status.Replays != 1 || !strings.Contains(row.Status.ReplayedBy, "op") {
		t.Errorf("%+v", row.Status)
	}
}

// TestWebhookUnset: without a secret deliveries are refused, and without an Agent so are labels.
func TestWebhookUnset(t *testing.T) {
	t.Parallel()
	h := newHooked(t, func(o *standalone.Options) { o.Webhook.Secret = "" })
	if got := h.deliver(delivery{id: "1", hook: "1", event: "ping", body: "{}"}); got.Code != http.StatusServiceUnavailable {
		t.Errorf("%+v", got)
	}
	h = newHooked(t, func(o *standalone.Options) { o.Webhook.Triggers.Agent = "" })
	if got := h.deliver(delivery{id: "1", hook: "1", event: "issues", body: issueLabeled("agent:implement", "1")}); got.Code != http.StatusServiceUnavailable || got.Status != "error" {
		t.Errorf("%+v", got)
	}
}

// TestDeliveryOnAFullDisk: a delivery for which there is no room is refused, so that the code host says so, and is not known. Delivered again
// when there is room, it makes its task.
func TestDeliveryOnAFullDisk(t *testing.T) {
	kit.Needs(t, kit.Minutes)
	t.Parallel()
	volume, metrics := standalone.SmallVolume(t, 64), prometheus.NewRegistry()
	h := newHooked(t, func(o *standalone.Options) {
		o.DataDir, o.Metrics, o.DiskReserve.Quantity = filepath.Join(volume, "data"), metrics, resource.MustParse("16Mi")
	})
	filler := filepath.Join(volume, "filler")
	standalone.FillVolume(t, filler, 4<<20)
	standalone.AwaitDiskFull(t, metrics)
	d := delivery{id: "1", hook: "10", event: "issues", body: issueLabeled("agent:implement", "1")}
	if got := h.deliver(d); got.Code != http.StatusServiceUnavailable || got.Message != "the delivery is not stored; deliver it again" {
		t.Errorf("on a full disk: %+v", got)
	}
	if rows := kit.Must[*v1alpha1.CodeHostDeliveryList](t)(h.API().CodeHostDeliveries("default").List(t.Context(), metav1.ListOptions{})); len(rows.Items) != 0 {
		t.Errorf("%+v", rows.Items)
	}
	if err := os.Remove(filler); err != nil {
		t.Fatal(err)
	}
	var got replied
	kit.Await(t, "room on the disk", func() bool { got = h.deliver(d); return got.Code != http.StatusServiceUnavailable })
	tasks := kit.Must[*v1alpha1.TaskList](t)(h.Tasks().List(t.Context(), metav1.ListOptions{}))
	if got.Code != http.StatusCreated || got.Status != "created" || len(tasks.Items) != 1 {
		t.Errorf("with room: %+v, %d tasks", got, len(tasks.Items))
	}
}
