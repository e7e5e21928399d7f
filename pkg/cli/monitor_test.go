// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
)

const headSHA = "0123456789012345678901234567890123456789"

// monitored answers like a server with the monitor shop, which has the pull request 3 and the issue 7, and notes what it is asked for.
type monitored struct {
	t     *testing.T
	asked []string
}

// objects are what the server has, by path.
var objects = map[string]string{
	"repositorymonitors/shop": `{"kind":"RepositoryMonitor","metadata":{"name":"shop","namespace":"default","generation":2},"spec":{"repoURL":"https://github.com/example/shop",
		"agents":{"reviewer":{"name":"critic"},"triager":{"name":"gone"}},"readCredentialRef":{"name":"hidden"},"forgeCredentialRef":{"name":"empty"},"publicationCredentialRef":{"name":"full","key":"k"}},
		"status":{"phase":"Error","observedGeneration":2,"conditions":[{"type":"Ready","status":"False","reason":"ValidationFailed","message":"the Agent gone does not exist"}]}}`,
	"monitoritems/shop.pr-3": `{"kind":"MonitorItem","metadata":{"name":"shop.pr-3","namespace":"default"},"spec":{"targetKind":"pull_request","number":3},"status":{"state":"open","title":"Mend\nit","headSHA":"` + headSHA + `",
		"review":{"headSHA":"` + headSHA + `","verdict":"needs_changes","summary":"nearly","findings":[{"priority":"P1","path":"a.go","line":3,"title":"leaks"}]},
		"repair":{"phase":"failed","attempts":1,"headSHA":"old"},"blockedReason":"Paused","message":"it has a label"}}`,
	"monitoritems/shop.issue-7": `{"kind":"MonitorItem","metadata":{"name":"shop.issue-7","namespace":"default"},"spec":{"targetKind":"issue","number":7},"status":{"state":"open","title":"Door","issue":{"phase":"plan_ready","plan":"1. open\n2. close"}}}`,
	"monitorworkactions": `{"kind":"MonitorWorkActionList","items":[
		{"metadata":{"name":"w1","creationTimestamp":"2026-01-01T00:00:01Z"},"spec":{"targetKind":"issue","number":7,"desiredAction":"implement"},"status":{"state":"failed","taskName":"t1","message":"tests fail"}},
		{"metadata":{"name":"w2","creationTimestamp":"2026-01-01T00:00:02Z"},"spec":{"targetKind":"issue","number":7,"desiredAction":"implement"},"status":{"state":"running","taskName":"t2"}}]}`,
	"monitorruns":                       `{"kind":"MonitorRunList","items":[{"metadata":{"name":"r1","creationTimestamp":"2026-01-01T00:00:00Z"},"spec":{"trigger":"schedule"},"status":{"state":"failed","message":"no answer"}}]}`,
	"monitorcommands":                   `{"kind":"MonitorCommandList","items":[]}`,
	"monitormutations":                  `{"kind":"MonitorMutationList","items":[]}`,
	"monitoritems":                      `{"kind":"MonitorItemList","items":[{"spec":{"targetKind":"pull_request","number":3},"status":{"blockedReason":"Paused","message":"it has a label"}}]}`,
	"agents/critic":                     `{"kind":"Agent","metadata":{"name":"critic"}}`,
	"secrets/empty":                     `{"kind":"Secret","metadata":{"name":"empty"},"data":{"other":"eA=="}}`,
	"secrets/full":                      `{"kind":"Secret","metadata":{"name":"full"},"data":{"k":"eA=="}}`,
	"tasks/t2/artifacts/workspace.diff": "+ a line\n",
}

func (m *monitored) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		m.t.Error(err)
	}
	_, path, _ := strings.Cut(r.URL.Path, "/namespaces/default/")
	asked := r.Method + " " + path
	if s := r.URL.Query().Get("fieldSelector"); s != "" {
		asked += "?" + s
	}
	if r.URL.Query().Get("dryRun") != "" {
		asked += " dry"
	}
	var sent map[string]any
	if json.Unmarshal(body, &sent) == nil {
		delete(sent, "metadata")
		text, err := json.Marshal(sent)
		if err != nil {
			m.t.Error(err)
		}
		asked += " " + strings.ReplaceAll(string(text), `"apiVersion":"core.platform.ai/v1alpha1",`, "")
	}
	m.asked = append(m.asked, asked)
	w.Header().Set("Content-Type", "application/json")
	fail := func(code int, reason, message string) {
		w.WriteHeader(code)
		if err := json.NewEncoder(w).Encode(metav1.Status{TypeMeta: metav1.TypeMeta{Kind: "Status", APIVersion: "v1"}, Status: "Failure", Code: int32(code), Reason: metav1.StatusReason(reason), Message: message}); err != nil {
			m.t.Error(err)
		}
	}
	object := strings.Replace(objects[path], `{"kind"`, `{"apiVersion":"core.platform.ai/v1alpha1","kind"`, 1)
	switch kind := map[string]string{"runs": "MonitorRun", "commands": "MonitorCommand"}[filepath.Base(path)]; {
	case r.Method == http.MethodPost && kind != "":
		w.WriteHeader(http.StatusCreated)
		_, _ = io.WriteString(w, `{"apiVersion":"core.platform.ai/v1alpha1","kind":"`+kind+`","metadata":{"name":"made"}}`)
	case r.Method == http.MethodPost && path == monitors && strings.Contains(asked, "taken"):
		fail(http.StatusConflict, "AlreadyExists", "it exists")
	case r.Method == http.MethodPost, r.Method == http.MethodPut:
		_, _ = w.Write(body)
	case path == "secrets/hidden":
		fail(http.StatusForbidden, "Forbidden", "no")
	case strings.Contains(r.Header.Get("Accept"), "as=Table") && !strings.Contains(path, "/"):
		_, _ = io.WriteString(w, `{"kind":"Table","apiVersion":"meta.k8s.io/v1","columnDefinitions":[{"name":"Name"}],"rows":[]}`)
	case object != "" && strings.Contains(r.Header.Get("Accept"), "as=Table"), path == "monitorworkactions/w2":
		_, _ = io.WriteString(w, `{"kind":"Table","apiVersion":"meta.k8s.io/v1","columnDefinitions":[{"name":"Name"}],"rows":[{"cells":["`+filepath.Base(path)+`"],"object":{"kind":"PartialObjectMetadata","apiVersion":"meta.k8s.io/v1","metadata":{"name":"x","resourceVersion":"1"}}}]}`)
	case object == "":
		fail(http.StatusNotFound, "NotFound", path+" not found")
	default:
		_, _ = io.WriteString(w, object)
	}
}

// run runs a command, and returns what it printed with the words of each line separated by one space and the lines by |.
func (m *monitored) run(address, args string) (printed string, code int) {
	var b strings.Builder
	m.asked = nil
	code = Main(m.t.Context(), "platform", append([]string{"--kubeconfig", "/dev/null", "-s", address}, strings.Fields(args)...), Streams{In: strings.NewReader(""), Out: &b, Err: &b})
	var lines []string
	for line := range strings.Lines(b.String()) {
		lines = append(lines, strings.Join(strings.Fields(line), " "))
	}
	return strings.Join(lines, "|"), code
}

// TestMonitorCommands: what commands about monitors ask the server for, and what they print.
func TestMonitorCommands(t *testing.T) {
	m := &monitored{t: t}
	s := httptest.NewServer(m)
	t.Cleanup(s.Close)
	dir := t.TempDir()
	file := func(name, text string) string {
		name = filepath.Join(dir, name)
		if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return name
	}
	const spec = "\nspec: {repoURL: 'https://github.com/example/shop', triggers: {github: {labels: {issues: {plan: think}}}}}\n"
	shop, taken := file("shop", "metadata: {name: shop}"+spec), file("taken", "metadata: {name: taken}"+strings.Replace(spec, "think", "taken", 1))
	const get, command = "GET repositorymonitors/shop", "POST repositorymonitors/shop/commands {"
	for _, c := range []struct {
		args  string
		code  int
		asked string // last; empty for nothing
		out   string
	}{
		{"monitor list", 0, "GET repositorymonitors", "nothing found"},
		{"monitor get shop", 0, get, "NAME|shop"},
		{"monitor run shop --target-kind issue --target-number 7 -o name", 0, `POST repositorymonitors/shop/runs {"kind":"MonitorRunRequest","targetKind":"issue","targetNumber":7}`, "monitorrun.core.platform.ai/made"},
		{"monitor runs shop --state failed", 0, "GET monitorruns?spec.monitorName=shop,status.state=failed", "nothing found"},
		{"monitor runs none", 1, "GET repositorymonitors/none", "platform: repositorymonitors/none not found"},
		{
			"monitor items shop --kind issue --number 7 --review-verdict passed --repair-state failed --automerge-state merged", 0,
			"GET monitoritems?spec.monitorName=shop,spec.targetKind=issue,spec.number=7,status.review.verdict=passed,status.repair.phase=failed,status.automerge.state=merged", "nothing found",
		},
		{"monitor issues list --name shop --state open", 0, "GET monitoritems?spec.targetKind=issue,spec.monitorName=shop,status.state=open", "nothing found"},
		{"monitor commands list --name a,b --intent review", 0, `GET monitorcommands?spec.monitorName=a\,b,spec.intent=review`, "nothing found"},
		{"monitor actions list --intent plan", 0, "GET monitorworkactions?spec.targetKind=issue,spec.desiredAction=plan", "nothing found"},
		{"monitor work-actions list --kind issue", 0, "GET monitorworkactions?spec.targetKind=issue", "nothing found"},
		{"monitor implementations list --name shop", 0, "GET monitorworkactions?spec.desiredAction=implement,spec.monitorName=shop", "nothing found"},
		{"monitor mutations list --operation merge", 0, "GET monitormutations?spec.operation=merge", "nothing found"},
		{"monitor mutations get none", 1, "GET monitormutations/none", "platform: monitormutations/none not found"},
		{"monitor pr repairs list --name shop", 0, "GET monitoritems?spec.targetKind=pull_request,status.repair.phase!=,spec.monitorName=shop", "NAME MONITOR NUMBER REPAIR ATTEMPTS TASK MESSAGE|<none> <none> 3 <none> <none> <none> <none>"},
		{"monitor pr ready list", 0, "GET monitoritems?spec.targetKind=pull_request,status.automerge.state=merge_ready", "nothing found"},

		{"monitor commands create shop --kind issue --number 7 --intent plan", 0, command + `"intent":"plan","kind":"MonitorCommandRequest","number":7,"targetKind":"issue"}`, "monitorcommand made created"},
		{"monitor commands create shop --kind issue --number 7", 1, "", `platform: required flag(s) "intent" not set`},
		{"monitor issue approve-plan shop #7", 0, command + `"intent":"approve_plan","kind":"MonitorCommandRequest","number":7,"targetKind":"issue"}`, "monitorcommand made created"},
		{"monitor issue plan shop seven", 1, "", `platform: "seven" must be the number of a pull request or issue`},
		{"monitor pr fix-ci shop 3", 0, command + `"intent":"fix_ci","kind":"MonitorCommandRequest","number":3,"targetKind":"pull_request","targetSHA":"` + headSHA + `"}`, "for the head " + headSHA + ", as the monitor saw it|monitorcommand made created"},
		{"monitor pr review shop 3 --target-sha abc", 0, command + `"intent":"review","kind":"MonitorCommandRequest","number":3,"targetKind":"pull_request","targetSHA":"abc"}`, "monitorcommand made created"},
		{"monitor pr stop shop 4", 0, command + `"intent":"stop","kind":"MonitorCommandRequest","number":4,"targetKind":"pull_request"}`, "monitorcommand made created"},
		{"monitor pr review shop 4", 1, get, "platform: the monitor shop has not seen pull request 4; to have it look: platform monitor run shop --target-kind pull_request --target-number 4"},
		{"monitor pr review none 4", 1, "GET repositorymonitors/none", "platform: repositorymonitors/none not found"},
		{"monitor issue implementation get shop 7", 0, "GET monitorworkactions/w2", "NAME|w2"},
		{"monitor issue patch preview shop 7", 0, "GET tasks/t2/artifacts/workspace.diff", "+ a line"},

		{"monitor create -f " + shop, 0, `POST repositorymonitors {"kind":"RepositoryMonitor",`, "repositorymonitor shop created"},
		{"monitor create", 1, "", `platform: required flag(s) "filename" not set`},
		{"monitor create -f " + file("task", "kind: Task"), 1, "", "platform: -f " + dir + `/task: kind: "Task": must be RepositoryMonitor`},
		{"monitor create -f " + file("odd", "spec: {colour: red}"), 1, "", "platform: -f " + dir + "/odd: error unmarshaling JSON: while decoding JSON: json: unknown field"},
		{"monitor update -f " + shop, 0, `PUT repositorymonitors/shop {"kind":"RepositoryMonitor",`, "repositorymonitor shop updated"},
		{"monitor update none -f " + shop, 1, "GET repositorymonitors/none", "platform: repositorymonitors/none not found"},
		{"monitor delete none", 1, "DELETE repositorymonitors/none", "platform: repositorymonitors/none not found"},
		{"monitor trigger-labels validate -f " + shop, 0, "POST repositorymonitors dry {", "Warning: no label is a command, because spec.triggers.github.labels.enabled is not set|LABEL OF COMMAND|issue triage|issue research|think issue plan|"},
		{"monitor trigger-labels validate -f " + taken, 1, "GET repositorymonitors/taken", "platform: repositorymonitors/taken not found"},

		{"delivery list --state Failed --event pull_request --repository o/r --delivery-id 1-2", 0, "GET codehostdeliveries?status.state=Failed,spec.event=pull_request,spec.repository=o/r,spec.deliveryID=1-2", "nothing found"},
		{"delivery replay d1", 0, `POST codehostdeliveries/d1/replay {"kind":"CodeHostDelivery"}`, "codehostdelivery d1 is decided once more"},
		{"chd get none", 1, "GET codehostdeliveries/none", "platform: codehostdeliveries/none not found"},
	} {
		out, code := m.run(s.URL, c.args)
		last := ""
		if n := len(m.asked); n > 0 {
			last = m.asked[n-1]
		}
		if code != c.code || !strings.HasPrefix(last, c.asked) || c.asked == "" && last != "" || !strings.HasPrefix(out, c.out) {
			t.Errorf("%s: exit code %d\nasked   %q\nwant    %q\nprinted %q\nwant    %q", c.args, code, m.asked, c.asked, out, c.out)
		}
	}
}

// TestMonitorReports: what commands make of several objects.
func TestMonitorReports(t *testing.T) {
	m := &monitored{t: t}
	s := httptest.NewServer(m)
	t.Cleanup(s.Close)
	at := func(second int) string {
		return time.Date(2026, 1, 1, 0, 0, second, 0, time.UTC).Local().Format(time.DateTime)
	}
	for _, c := range []struct {
		args string
		code int
		out  string
	}{
		{
			"monitor pr status shop 3", 0, "Title: Mend it|State: open|Blocked: Paused: it has a label|Head: " + headSHA + "|Review: needs_changes: nearly|Repair: failed, attempt 1 (of the earlier head old)||" +
				"Findings|P1 a.go:3 leaks||Work|implement running t2|implement failed t1 tests fail",
		},
		{"monitor issue status shop 7", 0, "Title: Door|State: open|Phase: plan_ready||Plan|1. open|2. close||Work|implement running t2|implement failed t1 tests fail"},
		{"monitor pr readiness shop 3", 2, "Ready: no: it has a label|Head: " + headSHA + "|Review: needs_changes|platform: pull request 3 is not ready to be merged"},
		{"monitor events shop", 0, "TIME KIND ABOUT WHAT STATE MESSAGE|" + at(0) + " run all schedule failed no answer|" + at(1) + " work issue 7 implement failed tests fail|" + at(2) + " work issue 7 implement running"},
		{"monitor events shop --limit 1", 0, "2 earlier records not shown: --limit"},
		{"monitor events shop --number 9", 0, "nothing found"},
		{"monitor events none", 1, "platform: repositorymonitors/none not found"},
		{
			"monitor doctor shop", 2, "FAIL Ready: ValidationFailed: the Agent gone does not exist|ok Agent critic (spec.agents.reviewer)|FAIL Agent gone (spec.agents.triager): it does not exist|" +
				"? Secret hidden (spec.readCredentialRef): you may not read it|FAIL Secret empty (spec.forgeCredentialRef): it has nothing under the key token|ok Secret full (spec.publicationCredentialRef)|" +
				"FAIL Last run: r1 of all, ",
		},
		{"monitor doctor shop -o yaml", 2, "blocked:|- message: it has a label|number: 3|reason: Paused|targetKind: pull_request|checks:|"},
		{"monitor watch shop --interval 0s", 1, "platform: --interval: must be longer than 0s"},
		{"monitor watch none", 1, "platform: repositorymonitors/none not found"},
	} {
		if out, code := m.run(s.URL, c.args); code != c.code || !strings.HasPrefix(out, c.out) {
			t.Errorf("%s: exit code %d\nprinted %q\nwant    %q", c.args, code, out, c.out)
		}
	}
	if out, _ := m.run(s.URL, "monitor doctor shop"); !strings.HasSuffix(out, "failed: no answer||Blocked|pull request 3 Paused it has a label|platform: monitor shop: 4 checks failed") {
		t.Error(out)
	}
}

// TestMonitorWatch: a row is printed when the monitor has changed, a server that is away for a while is asked again, and the end of the
// monitor is the end of the watch.
func TestMonitorWatch(t *testing.T) {
	answers := []string{"1", "1", "", "2", "gone"}
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		now := answers[0]
		answers = answers[1:]
		w.Header().Set("Content-Type", "application/json")
		switch now {
		case "":
			w.WriteHeader(http.StatusBadGateway)
		case "gone":
			w.WriteHeader(http.StatusNotFound)
			_, _ = io.WriteString(w, `{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"NotFound","code":404,"message":"gone"}`)
		default:
			_, _ = io.WriteString(w, `{"kind":"Table","apiVersion":"meta.k8s.io/v1","columnDefinitions":[{"name":"Name"}],"rows":[{"cells":["shop `+now+`"],"object":{"kind":"PartialObjectMetadata","apiVersion":"meta.k8s.io/v1","metadata":{"name":"shop","resourceVersion":"`+now+`"}}}]}`)
		}
	}))
	t.Cleanup(s.Close)
	var b strings.Builder
	code := Main(t.Context(), "platform", []string{"--kubeconfig", "/dev/null", "-s", s.URL, "monitor", "watch", "shop", "--interval", "1ms"}, Streams{In: strings.NewReader(""), Out: &b, Err: &b})
	if code != 1 || b.String() != "NAME\nshop 1\nshop 2\nplatform: gone\n" || len(answers) > 0 {
		t.Errorf("exit code %d, %v not asked for: %s", code, answers, b.String())
	}
}

// TestReadiness: a pull request is ready if the monitor found so for its present head; otherwise there is a reason.
func TestReadiness(t *testing.T) {
	passed := func(sha string) *v1alpha1.MonitorItemReview {
		return &v1alpha1.MonitorItemReview{HeadSHA: sha, Verdict: v1alpha1.MonitorVerdictPassed}
	}
	merge := func(sha string, state v1alpha1.MonitorAutomergeState, reason string) *v1alpha1.MonitorItemAutomerge {
		return &v1alpha1.MonitorItemAutomerge{HeadSHA: sha, State: state, Reason: reason}
	}
	for want, s := range map[string]v1alpha1.MonitorItemStatus{
		"":                                     {Review: passed("h"), Automerge: merge("h", v1alpha1.MonitorMergeReady, "")},
		"it is merged":                         {State: v1alpha1.MonitorItemMerged, Automerge: merge("h", v1alpha1.MonitorMergeDone, "")},
		"it is a draft":                        {BlockedReason: "Draft", Message: "it is a draft", Automerge: merge("h", v1alpha1.MonitorMergeReady, "")},
		"the command stop was given":           {Stopped: true, Automerge: merge("h", v1alpha1.MonitorMergeReady, "")},
		"checks fail":                          {Automerge: merge("h", v1alpha1.MonitorMergeBlocked, "checks fail")},
		"failed":                               {Automerge: merge("h", v1alpha1.MonitorMergeFailed, "")},
		"the head is not reviewed yet":         {Review: passed("earlier"), Automerge: merge("earlier", v1alpha1.MonitorMergeReady, "")},
		"the review of the head came to stale": {Review: &v1alpha1.MonitorItemReview{HeadSHA: "h", Verdict: v1alpha1.MonitorVerdictStale}},
		"the monitor has not asked the code host about it, as it does before it merges (spec.automerge)": {Review: passed("h")},
	} {
		if s.HeadSHA = "h"; s.State == "" {
			s.State = v1alpha1.MonitorItemOpen
		}
		got := ready(&s)
		if diff := cmp.Diff(want, got.Reason); diff != "" || got.Ready != (want == "") {
			t.Errorf("%t, %s", got.Ready, diff)
		}
	}
}
