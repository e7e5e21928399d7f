// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package task

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
	"github.com/platform-ai/platform/pkg/clip"
	"github.com/platform-ai/platform/pkg/controller/publisher"
	"github.com/platform-ai/platform/pkg/controller/step"
	"github.com/platform-ai/platform/pkg/plan"
	"github.com/platform-ai/platform/pkg/redact"
	"github.com/platform-ai/platform/pkg/workspace"
)

// Publisher carries out steps of publications; see package publisher.
type Publisher interface {
	Do(s publisher.Step) (*workspace.Answer, error)
	Folder(uid types.UID) (string, error)
	Forget(uid types.UID) error
	OnEnd(f func(types.NamespacedName))
}

const (
	// publishPatience is how long a server may be unreachable before a publication is given up.
	publishPatience = 5 * time.Minute
	// publishRetry is how soon a step is repeated whose server was unreachable, or did not yet show what it said.
	publishRetry = 2 * time.Second
)

// publish publishes what the run of a task changed, after the run and while the task is Finalizing. The states of status.delivery are
// the steps:
//
//	Validating  what the run left and where the branch is are read, with the read credential
//	Preparing   a commit is made of it, and refused if the task does not allow it
//	Prepared    the commit is known, and nobody has it
//	Publishing  the branch is moved, with the push credential
//	Verifying   the branch is read again, with the read credential: what that read sees decides how the task ends. Then, if the task asks
//	            for it, there is a pull request, made with the forge credential
//
// A state is stored before its step begins, so after a crash the same step is repeated. That is safe: the commit is the same one each
// time, and the branch is moved only from the commit that was recorded. Before Publishing nothing has left, so a cancellation ends the
// task; from then on the publication is finished, because only that tells what happened.
type publish struct {
	now       func() time.Time
	publisher Publisher
	append    appendFunc
	end       endFunc
	origin    origin
	// delta returns what the run left; false if nothing.
	delta func(ctx context.Context, t *v1alpha1.Task) ([]byte, bool, error)
	// secret returns a credential of a task's workspace, and the version of its Secret.
	secret func(ctx context.Context, s plan.Secret) (token string, found plan.Secret, version string, err error)
	// children returns the tasks that a task has delegated.
	children func(ctx context.Context, t *v1alpha1.Task) ([]v1alpha1.Task, error)
	// evidence records pull requests for reports of usage.
	evidence evidence
	// allow lists addresses that may be reached although they are not public.
	allow []string
	// lately remembers what this process saw of publications.
	lately *sightings
}

// freeze records the versions of the credentials that the attempt is started with. A Secret that is another one when the run is over is
// not used.
func (s publish) freeze(ctx context.Context, t *v1alpha1.Task) error {
	if !t.Spec.Workspace.Writes() {
		return nil
	}
	e := &v1alpha1.TaskExecutionStatus{}
	if t.Status.Execution != nil {
		e = t.Status.Execution.DeepCopy()
	}
	e.Attempt = t.Status.Attempts + 1
	for _, c := range credentialsOf(t) {
		*c.version(e) = ""
		if c.ref == nil {
			continue
		}
		_, _, version, err := s.secret(ctx, plan.WorkspaceSecret(t, c.use, c.ref))
		if err != nil {
			return err
		}
		*c.version(e) = version
	}
	t.Status.Execution = e
	return nil
}

// credential is one of the credentials of a workspace, with the place of its frozen version.
type credential struct {
	use     plan.SecretUse
	ref     *v1alpha1.WorkspaceCredentialReference
	version func(*v1alpha1.TaskExecutionStatus) *string
}

func credentialsOf(t *v1alpha1.Task) []credential {
	w := t.Spec.Workspace
	return []credential{
		{plan.ForRepository, w.ReadCredentialRef, func(e *v1alpha1.TaskExecutionStatus) *string { return &e.ReadCredentialResourceVersion }},
		{plan.ForPublicationRead, w.PublicationReadCredentialRef, func(e *v1alpha1.TaskExecutionStatus) *string { return &e.PublicationReadCredentialResourceVersion }},
		{plan.ForPublication, w.PublicationCredentialRef, func(e *v1alpha1.TaskExecutionStatus) *string { return &e.PublicationCredentialResourceVersion }},
		{plan.ForForge, w.ForgeCredentialRef, func(e *v1alpha1.TaskExecutionStatus) *string { return &e.ForgeCredentialResourceVersion }},
	}
}

// begin makes a task whose run succeeded Finalizing.
func (s publish) begin(ctx context.Context, t *v1alpha1.Task, o outcome) error {
	if err := s.origin.freeze(ctx, t); err != nil {
		return err
	}
	d := t.Status.Delivery
	if d == nil || d.StartingSHA == "" {
		return s.finish(ctx, t, outcome{phase: v1alpha1.TaskFailed, reason: v1alpha1.ReasonInternalError, message: "the commit that the run began with was not recorded"})
	}
	t.Status.ExecutionOutcome = &v1alpha1.TaskExecutionOutcome{
		Phase: o.phase, Attempt: t.Status.Attempts, RecordedAt: &metav1.Time{Time: s.now().Truncate(time.Second)}, Message: o.message,
	}
	d.PublicationID = fmt.Sprintf("pub-%s-%d", t.UID, t.Status.Attempts)
	d.Branch = cmp.Or(t.Spec.Workspace.PushBranch, ownBranch(t))
	e := phaseChanged(t, t.Status.Phase, v1alpha1.TaskFinalizing, "what the run changed is being published")
	t.Status.Phase = v1alpha1.TaskFinalizing
	return s.advance(ctx, t, v1alpha1.DeliveryValidating, e)
}

// ownBranch returns the branch of a task that names none.
func ownBranch(t *v1alpha1.Task) string {
	return "platform/" + v1alpha1.ShortName(t.Name, "-"+string(t.UID)[:min(8, len(t.UID))], 200)
}

// do carries out the step of the state.
func (s publish) do(ctx context.Context, t *v1alpha1.Task) error {
	if t.Status.Phase != v1alpha1.TaskFinalizing {
		return nil
	}
	if s.publisher == nil {
		return s.settle(ctx, t, v1alpha1.DeliveryConflict, outcome{reason: v1alpha1.ReasonNotSupported, message: "this server publishes nothing any more"})
	}
	if t.Status.Delivery == nil {
		t.Status.Delivery = &v1alpha1.TaskDelivery{}
	}
	if canWithdraw(t) && meta.IsStatusConditionTrue(t.Status.Conditions, v1alpha1.ConditionCancelRequested) {
		return s.settle(ctx, t, v1alpha1.DeliveryCancelledBeforePublish, outcome{phase: v1alpha1.TaskCancelled, reason: v1alpha1.ReasonCancelled, message: "the task was cancelled; nothing was published"})
	}
	switch t.Status.Delivery.State {
	case v1alpha1.DeliveryValidating:
		return s.validate(ctx, t)
	case v1alpha1.DeliveryPreparing:
		return s.prepare(ctx, t)
	case v1alpha1.DeliveryPrepared:
		return s.advance(ctx, t, v1alpha1.DeliveryPublishing)
	case v1alpha1.DeliveryPublishing:
		return s.push(ctx, t)
	case v1alpha1.DeliveryVerifying:
		if t.Status.Delivery.VerifiedRemoteSHA != "" {
			return s.pull(ctx, t)
		}
		return s.verify(ctx, t)
	}
	return s.settle(ctx, t, v1alpha1.DeliveryPublicationOutcomeUnknown, outcome{reason: v1alpha1.ReasonInternalError, message: fmt.Sprintf("the state %q of the delivery is not one that a publication has", t.Status.Delivery.State)})
}

// canWithdraw reports whether nothing of a publication has left yet.
func canWithdraw(t *v1alpha1.Task) bool {
	switch t.Status.Delivery.State {
	case v1alpha1.DeliveryValidating, v1alpha1.DeliveryPreparing, v1alpha1.DeliveryPrepared:
		return true
	default:
		return false
	}
}

// validate looks at what the run left and at the branch.
func (s publish) validate(ctx context.Context, t *v1alpha1.Task) error {
	dir, data, err := s.left(ctx, t)
	if err != nil || data == nil {
		return err
	}
	d := t.Status.Delivery
	d.ArtifactDigest = workspace.Digest(data)
	seen, err := s.look(ctx, t, dir, "")
	if err != nil || seen == nil {
		return err
	}
	want := t.Spec.Workspace.ExpectedRemoteSHA
	switch {
	case want != "" && seen.Head != want:
		return s.conflict(ctx, t, fmt.Sprintf("branch %s is %s, and spec.workspace.expectedRemoteSHA is %s", d.Branch, whereIs(seen.Head), want))
	case seen.Head != "" && t.Spec.Workspace.PushBranch == "":
		return s.conflict(ctx, t, fmt.Sprintf("branch %s exists already, %s", d.Branch, whereIs(seen.Head)))
	case seen.Head != "" && !seen.Forward:
		return s.conflict(ctx, t, fmt.Sprintf("branch %s is %s, which the run's commit %s does not have before it; nothing is overwritten", d.Branch, whereIs(seen.Head), d.StartingSHA))
	}
	d.RemoteBeforeSHA = &seen.Head
	return s.advance(ctx, t, v1alpha1.DeliveryPreparing)
}

// whereIs says where a branch is.
func whereIs(head string) string {
	if head == "" {
		return "not there"
	}
	return "at " + head
}

// left returns the folder of the publication and the delta, which it stores there. The delta is nil if the publication is settled.
func (s publish) left(ctx context.Context, t *v1alpha1.Task) (dir string, data []byte, err error) {
	if dir, err = s.publisher.Folder(t.UID); err != nil {
		return "", nil, err
	}
	file := filepath.Join(dir, deltaFile)
	if data, err = os.ReadFile(file); err == nil {
		return dir, data, nil
	}
	data, found, err := s.delta(ctx, t)
	if err != nil {
		return "", nil, err
	}
	if !found {
		return "", nil, s.settle(ctx, t, v1alpha1.DeliveryConflict, outcome{reason: v1alpha1.ReasonInternalError, message: "the run left no account of what it changed"})
	}
	return dir, data, os.WriteFile(file, data, 0o600)
}

// Files of a publication.
const (
	deltaFile = "delta.tar.gz"
	packFile  = "commit.pack"
)

// prepare makes the commit.
func (s publish) prepare(ctx context.Context, t *v1alpha1.Task) error {
	built, err := s.build(ctx, t)
	if err != nil || built == nil {
		return err
	}
	d := t.Status.Delivery
	if field := secretText(t); field != "" {
		return s.settle(ctx, t, v1alpha1.DeliveryConflict, outcome{reason: v1alpha1.ReasonPublicationRefused, message: field + " looks like it contains a secret; nothing was published"})
	}
	if built.Files == 0 {
		o := outcome{reason: v1alpha1.ReasonNoChanges, message: "the task was to change its repository, and its run changed nothing"}
		if by, err := s.deliveredBy(ctx, t); err != nil {
			return err
		} else if by != "" {
			o = outcome{phase: v1alpha1.TaskSucceeded, message: fmt.Sprintf("its run changed nothing itself; task %s, which it delegated, has published", by)}
		}
		return s.settle(ctx, t, v1alpha1.DeliveryNoChange, o)
	}
	d.TreeSHA, d.ExpectedCommitSHA = built.Tree, built.Commit
	return s.advance(ctx, t, v1alpha1.DeliveryPrepared)
}

// deliveredBy returns the name of a task that was delegated and has published; empty if there is none.
func (s publish) deliveredBy(ctx context.Context, t *v1alpha1.Task) (string, error) {
	if !t.Status.HasChildren {
		return "", nil
	}
	children, err := s.children(ctx, t)
	if err != nil {
		return "", err
	}
	for i := range children {
		if d := children[i].Status.Delivery; d != nil && d.VerifiedRemoteSHA != "" {
			return children[i].Name, nil
		}
	}
	return "", nil
}

// build makes the commit; nil if the publication is settled.
func (s publish) build(ctx context.Context, t *v1alpha1.Task) (*workspace.Built, error) {
	dir, data, err := s.left(ctx, t)
	if err != nil || data == nil {
		return nil, err
	}
	if d := t.Status.Delivery; workspace.Digest(data) != d.ArtifactDigest {
		return nil, s.settle(ctx, t, v1alpha1.DeliveryConflict, outcome{reason: v1alpha1.ReasonPublicationRefused, message: "what the run left is not what the publication began with"})
	}
	w := t.Spec.Workspace
	order := workspace.BuildOrder{
		Delta: filepath.Join(dir, deltaFile), Pack: filepath.Join(dir, packFile), Parent: t.Status.Delivery.StartingSHA,
		Message: commitMessage(t), Time: recordedAt(t),
		Policy: workspace.Policy{
			AllowedPaths: w.AllowedPaths, DenyControlPaths: w.DenyRepositoryControlPaths, RejectBinary: w.RejectBinaryFiles, RejectSecrets: w.RejectSecretLikeContent,
		},
	}
	if w.MaxChangedFiles != nil {
		order.Policy.MaxChangedFiles = int(*w.MaxChangedFiles)
	}
	answer, err := s.step(ctx, t, workspace.Build, order)
	if err != nil || answer == nil {
		return nil, err
	}
	return answer.Built, nil
}

func recordedAt(t *v1alpha1.Task) time.Time {
	if o := t.Status.ExecutionOutcome; o != nil && o.RecordedAt != nil {
		return o.RecordedAt.Time
	}
	return t.CreationTimestamp.Time
}

// maxSubject is how long the first line of a commit's message is at most, in bytes.
const maxSubject = 72

// commitMessage returns the message of the commit: the first line of the prompt, unless it looks like a secret, and the task.
func commitMessage(t *v1alpha1.Task) string {
	subject := generatedTitle(t)
	if line := firstLine(t, func(line string) string { return strings.Join(strings.Fields(line), " ") }); line != "" {
		if _, secret := redact.Text(line); !secret {
			subject = clip.Text(line, maxSubject)
		}
	}
	return fmt.Sprintf("%s\n\nPlatform-Task: %s/%s\nPlatform-Publication: %s\n", subject, t.Namespace, t.Name, t.Status.Delivery.PublicationID)
}

// generatedTitle names what a task changed, where its prompt does not.
func generatedTitle(t *v1alpha1.Task) string {
	return "Changes by task " + t.Namespace + "/" + t.Name
}

// firstLine returns the first line of the prompt that is not empty once it is shaped; empty if there is none.
func firstLine(t *v1alpha1.Task, shape func(line string) string) string {
	for line := range strings.Lines(plan.Prompt(&t.Spec)) {
		if line = shape(line); line != "" {
			return line
		}
	}
	return ""
}

// push moves the branch. What becomes of it is for verify to see.
func (s publish) push(ctx context.Context, t *v1alpha1.Task) error {
	d := t.Status.Delivery
	dir, err := s.publisher.Folder(t.UID)
	if err != nil {
		return err
	}
	pack := filepath.Join(dir, packFile)
	if _, err := os.Stat(pack); err != nil { // a restart: the same commit is made again
		built, err := s.build(ctx, t)
		if err != nil || built == nil {
			return err
		}
		if built.Commit != d.ExpectedCommitSHA {
			return s.settle(ctx, t, v1alpha1.DeliveryPublicationOutcomeUnknown, outcome{reason: v1alpha1.ReasonInternalError, message: fmt.Sprintf("the commit was to be %s and is %s", d.ExpectedCommitSHA, built.Commit)})
		}
	}
	if d.RemoteBeforeSHA == nil {
		return s.settle(ctx, t, v1alpha1.DeliveryPublicationOutcomeUnknown, outcome{reason: v1alpha1.ReasonInternalError, message: "where the branch was before was not recorded"})
	}
	access, failed, err := s.access(ctx, t, plan.ForPublication)
	if err != nil {
		return err
	}
	if failed == "" {
		answer, err := s.publisher.Do(s.named(t, workspace.Push, workspace.PushOrder{Access: access, Branch: d.Branch, Old: *d.RemoteBeforeSHA, New: d.ExpectedCommitSHA, Pack: pack}))
		if errors.Is(err, publisher.ErrWorking) {
			return step.ErrDone // its end wakes the task
		}
		s.lately.pushed(t.UID, answer, err)
	} else {
		s.lately.blocked(t.UID, failed)
	}
	return s.advance(ctx, t, v1alpha1.DeliveryVerifying)
}

// verify reads the branch and decides how the publication ended.
func (s publish) verify(ctx context.Context, t *v1alpha1.Task) error {
	dir, err := s.publisher.Folder(t.UID)
	if err != nil {
		return err
	}
	d := t.Status.Delivery
	seen, err := s.look(ctx, t, dir, d.ExpectedCommitSHA)
	if err != nil || seen == nil {
		return err
	}
	var before string
	if d.RemoteBeforeSHA != nil {
		before = *d.RemoteBeforeSHA
	}
	last := s.lately.of(t.UID)
	switch {
	case seen.Head == d.ExpectedCommitSHA && seen.Tree != d.TreeSHA:
		return s.settle(ctx, t, v1alpha1.DeliveryPublicationOutcomeUnknown, outcome{
			reason: v1alpha1.ReasonPublicationOutcomeUnknown, message: fmt.Sprintf("branch %s is at the commit %s, but the server gives out another tree for it", d.Branch, seen.Head),
		})
	case seen.Head == d.ExpectedCommitSHA:
		d.VerifiedRemoteSHA, d.SupersedingRemoteSHA = seen.Head, ""
		return s.delivered(ctx, t)
	case seen.Contains:
		d.VerifiedRemoteSHA, d.SupersedingRemoteSHA = d.ExpectedCommitSHA, seen.Head
		return s.delivered(ctx, t)
	case seen.Head != before:
		return s.conflict(ctx, t, fmt.Sprintf("branch %s was %s and is now %s, which does not have the commit %s; nothing was overwritten", d.Branch, whereIs(before), whereIs(seen.Head), d.ExpectedCommitSHA))
	case last.blocked != "":
		return s.settle(ctx, t, v1alpha1.DeliveryCredentialBlocked, outcome{reason: v1alpha1.ReasonCredentialBlocked, message: last.blocked})
	case last.outcome == workspace.PushRefused:
		return s.conflict(ctx, t, fmt.Sprintf("the server refuses to move branch %s, which is %s; a rule or a hook of the repository may be the reason, or the repository lacks the commit %s", d.Branch, whereIs(before), d.StartingSHA))
	case s.now().Sub(last.since) >= publishPatience:
		return s.settle(ctx, t, v1alpha1.DeliveryPublicationOutcomeUnknown, outcome{
			reason: v1alpha1.ReasonPublicationOutcomeUnknown, message: fmt.Sprintf("the server was asked to move branch %s to %s %s, and the branch is still %s", d.Branch, d.ExpectedCommitSHA, last.answered(), whereIs(before)),
		})
	case last.outcome == workspace.PushAccepted || last.outcome == workspace.PushMoved || last.outcome == workspace.PushNotNeeded:
		return step.Wait{After: publishRetry, Reason: "the server does not yet show what it said about the branch"}
	}
	// Nobody knows what became of the push, and the branch is where it was: the same push may be made again.
	d.State = v1alpha1.DeliveryPublishing
	if last.outcome == "" { // a restart, or a server that could not be reached
		return step.ErrDone
	}
	return step.Wait{After: publishRetry, Reason: "the answer to the push was lost"}
}

// look reads where the branch is; nil if the publication is settled.
func (s publish) look(ctx context.Context, t *v1alpha1.Task, dir, published string) (*workspace.Seen, error) {
	access, failed, err := s.access(ctx, t, plan.ForPublicationRead)
	if err != nil {
		return nil, err
	}
	if failed != "" {
		return nil, s.blocked(ctx, t, failed)
	}
	d := t.Status.Delivery
	answer, err := s.step(ctx, t, workspace.Look, workspace.LookOrder{Access: access, Branch: d.Branch, Known: d.StartingSHA, Published: published, Temp: dir})
	if err != nil || answer == nil {
		return nil, err
	}
	return answer.Seen, nil
}

// named returns a step of a task's publication.
func (s publish) named(t *v1alpha1.Task, name string, order any) publisher.Step {
	return publisher.Step{Task: types.NamespacedName{Namespace: t.Namespace, Name: t.Name}, UID: t.UID, ID: string(t.Status.Delivery.State) + "/" + name, Name: name, Order: order}
}

// step carries out a step. The answer is nil if the publication is settled. A server that cannot be reached is asked again for a while.
func (s publish) step(ctx context.Context, t *v1alpha1.Task, name string, order any) (*workspace.Answer, error) {
	answer, err := s.publisher.Do(s.named(t, name, order))
	if errors.Is(err, publisher.ErrWorking) {
		return nil, step.ErrDone // its end wakes the task
	}
	failed, ok := errors.AsType[*workspace.FailedError](err)
	switch {
	case err == nil:
		s.lately.reached(t.UID)
		return answer, nil
	case !ok:
		return nil, fmt.Errorf("publication: %w", err)
	case failed.Temporary && s.lately.patient(t.UID, s.now()):
		return nil, step.Wait{After: publishRetry, Reason: failed.Message}
	case failed.Reason == v1alpha1.ReasonCredentialBlocked:
		return nil, s.blocked(ctx, t, failed.Message)
	case !canWithdraw(t):
		return nil, s.settle(ctx, t, v1alpha1.DeliveryPublicationOutcomeUnknown, outcome{
			reason: v1alpha1.ReasonPublicationOutcomeUnknown, message: "the branch was to be moved, and where it is cannot be read: " + failed.Message,
		})
	}
	return nil, s.settle(ctx, t, v1alpha1.DeliveryConflict, outcome{reason: failed.Reason, message: "nothing was published: " + failed.Message})
}

// access returns how the publication repository is reached with one of the credentials, or why it may not be.
func (s publish) access(ctx context.Context, t *v1alpha1.Task, use plan.SecretUse) (a workspace.Access, failed string, err error) {
	a = workspace.Access{URL: t.Spec.Workspace.PublicationURL(), Allow: s.allow}
	for _, c := range credentialsOf(t) {
		if c.use != use || c.ref == nil {
			continue
		}
		token, found, version, err := s.secret(ctx, plan.WorkspaceSecret(t, use, c.ref))
		if err != nil {
			return a, "", err
		}
		frozen := ""
		if e := t.Status.Execution; e != nil {
			frozen = *c.version(e)
		}
		switch {
		case token == "":
			return a, fmt.Sprintf("Secret %q has no key %q any more", c.ref.Name, c.ref.Key), nil
		case version != frozen:
			return a, fmt.Sprintf("Secret %q was changed since the run began; it is used only as it was then", c.ref.Name), nil
		}
		a.Token, a.Hosts = token, found.Hosts
	}
	return a, "", nil
}

// blocked ends a publication whose credential cannot be used.
func (s publish) blocked(ctx context.Context, t *v1alpha1.Task, why string) error {
	if !canWithdraw(t) {
		return s.settle(ctx, t, v1alpha1.DeliveryPublicationOutcomeUnknown, outcome{
			reason: v1alpha1.ReasonPublicationOutcomeUnknown, message: "the branch was to be moved, and where it is cannot be read: " + why,
		})
	}
	return s.settle(ctx, t, v1alpha1.DeliveryCredentialBlocked, outcome{reason: v1alpha1.ReasonCredentialBlocked, message: "nothing was published: " + why})
}

func (s publish) conflict(ctx context.Context, t *v1alpha1.Task, message string) error {
	return s.settle(ctx, t, v1alpha1.DeliveryConflict, outcome{reason: v1alpha1.ReasonDeliveryConflict, message: message})
}

// advance stores the next state, with an event before it.
func (s publish) advance(ctx context.Context, t *v1alpha1.Task, to v1alpha1.TaskDeliveryState, before ...v1alpha1.ExecutionEvent) error {
	if err := s.change(ctx, t, to, "", before...); err != nil {
		return err
	}
	return step.ErrDone // the next reconcile begins it, when this is stored
}

func (s publish) change(ctx context.Context, t *v1alpha1.Task, to v1alpha1.TaskDeliveryState, message string, before ...v1alpha1.ExecutionEvent) error {
	d := t.Status.Delivery
	content := map[string]any{
		"from": string(d.State), "to": string(to), "publicationID": d.PublicationID, "repository": t.Spec.Workspace.PublicationURL(), "branch": d.Branch, "startingSHA": d.StartingSHA,
	}
	if d.PRReceipt != nil {
		content["pullRequest"] = d.PRReceipt.Number
	}
	for name, value := range map[string]string{
		"treeSHA": d.TreeSHA, "expectedCommitSHA": d.ExpectedCommitSHA, "verifiedRemoteSHA": d.VerifiedRemoteSHA, "supersedingRemoteSHA": d.SupersedingRemoteSHA, "artifactDigest": d.ArtifactDigest,
	} {
		if value != "" {
			content[name] = value
		}
	}
	if d.RemoteBeforeSHA != nil {
		content["remoteBeforeSHA"] = *d.RemoteBeforeSHA
	}
	summary := fmt.Sprintf("delivery: %s", to)
	if message != "" {
		summary += ": " + message
	}
	e := event(t, v1alpha1.EventDeliveryStateChanged, fmt.Sprintf("controller/delivery/%d/%s", t.Status.Attempts, to), summary, content)
	if err := s.append(ctx, t, first(t, append(before, e)...)...); err != nil {
		return err
	}
	d.State, d.Message = to, message
	return nil
}

// settle ends the publication, and the task with it.
func (s publish) settle(ctx context.Context, t *v1alpha1.Task, to v1alpha1.TaskDeliveryState, o outcome) error {
	o.phase = cmp.Or(o.phase, v1alpha1.TaskFailed)
	if o.phase == v1alpha1.TaskFailed && meta.IsStatusConditionTrue(t.Status.Conditions, v1alpha1.ConditionCancelRequested) {
		o.phase = v1alpha1.TaskCancelled
	}
	if err := s.change(ctx, t, to, o.message); err != nil {
		return err
	}
	if work := t.Status.ExecutionOutcome; o.phase == v1alpha1.TaskSucceeded && work != nil && work.Message != "" {
		o.message = work.Message + "; " + o.message
	}
	return s.finish(ctx, t, o)
}

func (s publish) finish(ctx context.Context, t *v1alpha1.Task, o outcome) error {
	if err := s.end(ctx, t, o); err != nil {
		return err
	}
	if err := s.forget(t); err != nil {
		return err
	}
	return step.ErrDone
}

// forget removes what is known of a task's publication.
func (s publish) forget(t *v1alpha1.Task) error {
	if s.publisher == nil {
		return nil
	}
	s.lately.forget(t.UID)
	return s.publisher.Forget(t.UID)
}
