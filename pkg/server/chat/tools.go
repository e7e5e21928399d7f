// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package chat

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/utils/clock"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
	"github.com/platform-ai/platform/pkg/generated/clientset/versioned"
	"github.com/platform-ai/platform/pkg/tool"
	"github.com/platform-ai/platform/pkg/tool/builtin"
)

// fieldManager is the field manager of what chats create.
const fieldManager = "platform-chat"

// Toolset says for whom the tools of the orchestrator work, and where.
type Toolset struct {
	// Caller is the user in whose name the tools act.
	Caller    user.Info
	Namespace string
	// Provider and Model answer the conversation; tasks without an agent use them, too.
	Provider, Model string
	// Session is the name of the session that the tools must not delete; empty for none.
	Session string
	// Prefix begins the names of tasks, so that conversations do not take each other's names. Labels are on everything
	// that the tools create.
	Prefix string
	Labels map[string]string
	// Words are what the user says. They decide which of the tools that manage objects are offered. Said is what the user has said in the
	// conversation, for load_tools.
	Words string
	Said  []string
	// In is where the tools are offered: Chats or APIs.
	In builtin.Place
	// More are offered besides, within the limit of time for one call.
	More []tool.Tool
	// Wrap, if set, returns what is offered in place of a tool.
	Wrap func(tool.Tool) tool.Tool
}

// Tools returns the tools of the orchestrator, within the limits of chats: of tasks for one turn, and of time for one
// call. Each operation is authorized as the caller's own, and a refusal is a result for the model.
func (s *Service) Tools(ctx context.Context, o Toolset) (*tool.Catalogue, error) {
	b, err := s.toolbox(o)
	if err != nil {
		return nil, err
	}
	return b.catalogue(ctx)
}

func (s *Service) toolbox(o Toolset) (*toolbox, error) {
	caller, err := s.callers.client(o.Caller)
	if err != nil {
		return nil, fmt.Errorf("client of the caller: %w", err)
	}
	return &toolbox{Toolset: o, caller: caller, own: s.own, limits: &s.o.Limits, clock: s.o.Clock, uncovered: s.o.Uncovered}, nil
}

// toolbox is what the tools of one turn work with. It has many methods because each tool is one.
type toolbox struct {
	Toolset
	caller versioned.Interface // acts as the caller; every operation of a tool goes through it
	own    versioned.Interface // acts as the server; only wakes tools that wait
	limits *Limits
	clock  clock.WithDelayedExecution
	// uncovered is Options.Uncovered.
	uncovered func(ctx context.Context, caller user.Info, own, served []string) []string
	// created counts the tasks of this turn.
	created int32
	// call identifies the call that is made now; empty if it is not made again after a crash.
	call string
	// offered are the tools that the model has.
	offered *tool.Catalogue
}

// binding is a tool of the catalogue with the code that carries it out.
type binding struct {
	of   *builtin.Tool
	make func(*toolbox) tool.Tool
}

// operation binds a tool to a method of the toolbox.
func operation[A any](of *builtin.Tool, call func(*toolbox, context.Context, A) (any, error)) binding {
	return binding{of, func(b *toolbox) tool.Tool {
		return tool.New(of.Definition(), func(ctx context.Context, arguments A) (any, error) { return call(b, ctx, arguments) })
	}}
}

// bindings binds the tools of chats and of the vendors' APIs. Tools that runs have as well are the code of workers, and Toolset.More
// has them.
func bindings() []binding {
	return []binding{
		operation(builtin.ChatCreateAITask, (*toolbox).createAITask),
		operation(builtin.ChatCreateContainerTask, (*toolbox).createContainerTask),
		operation(builtin.ChatCreateAgentTask, (*toolbox).createAgentTask),
		operation(builtin.ChatCheckTaskProgress, (*toolbox).checkTask),
		operation(builtin.ChatFetchTaskOutput, (*toolbox).fetchOutput),
		operation(builtin.ChatWaitForTask, (*toolbox).waitForTask),
		operation(builtin.ChatCancelTask, (*toolbox).cancelTask),
		operation(builtin.ChatListAgents, (*toolbox).listAgents),
		operation(builtin.ChatListTools, (*toolbox).listTools),
		operation(builtin.ChatListTasks, (*toolbox).listTasks),
		operation(builtin.ChatLoadTools, (*toolbox).loadTools),
		operation(builtin.ChatCreateAgent, (*toolbox).createAgent),
		operation(builtin.ChatUpdateAgent, (*toolbox).updateAgent),
		operation(builtin.ChatDeleteAgent, (*toolbox).deleteAgent),
		operation(builtin.ChatCreateTool, (*toolbox).createTool),
		operation(builtin.ChatDeleteTool, (*toolbox).deleteTool),
		operation(builtin.ChatDeleteSession, (*toolbox).deleteSession),
		operation(builtin.ChatCreatePRMonitor, (*toolbox).createPRMonitor),
		{builtin.ChatCodeExec, func(b *toolbox) tool.Tool { return codeTool{b} }},
	}
}

// carriedOut returns the code of a tool.
func carriedOut(b *toolbox, t *builtin.Tool, all []binding) (tool.Tool, error) {
	if t.Absent != nil {
		return refuser{t}, nil //nolint:nilerr // the refusal is what a call is answered
	}
	i := slices.IndexFunc(all, func(one binding) bool { return one.of == t })
	if i < 0 {
		return nil, fmt.Errorf("the tool %s has no code", t.Name)
	}
	return all[i].make(b), nil
}

// refuser is a tool that refuses every call.
type refuser struct{ of *builtin.Tool }

// Definition is that of the catalogue.
func (r refuser) Definition() tool.Definition { return r.of.Definition() }

// Call returns the reason.
func (r refuser) Call(context.Context, json.RawMessage) (any, error) { return nil, r.of.Absent }

// repeats reports whether a call of a tool may be made again: it only reads, or what it creates is marked with the id of the call. A
// call of a tool that does not exist does nothing.
func repeats(name string) bool {
	t, ok := builtin.FindIn(builtin.Chats, name)
	return !ok || t.Once || !t.Effects.Has(builtin.Writes)
}

// toolNames returns the names of all tools of chats.
func toolNames() []string {
	var names []string
	for _, t := range builtin.In(builtin.Chats) {
		names = append(names, t.Name)
	}
	return names
}

// catalogue returns the tools that are offered for what the user says.
func (b *toolbox) catalogue(ctx context.Context) (*tool.Catalogue, error) {
	tools, err := b.serve(ctx, func(of *builtin.Tool) bool {
		if of == builtin.ChatLoadTools {
			return slices.ContainsFunc(loadable, func(of builtin.Intent) bool { return !wanted(of, b.Words) })
		}
		return wanted(of.Asked, b.Words)
	}, b.More)
	if err != nil {
		return nil, err
	}
	b.offered, err = tool.NewCatalogue(tools...)
	return b.offered, err
}

// serve makes tools of the catalogue, and more beside them, as they are offered to the caller.
func (b *toolbox) serve(ctx context.Context, which func(*builtin.Tool) bool, more []tool.Tool) ([]tool.Tool, error) {
	var tools []tool.Tool
	var own, served []string
	all := bindings()
	for _, of := range builtin.In(b.In) {
		if of.In&builtin.Runs != 0 || !which(of) {
			continue
		}
		t, err := carriedOut(b, of, all)
		if err != nil {
			return nil, err
		}
		tools, own = append(tools, t), append(own, of.Name)
	}
	for _, t := range more {
		tools, served = append(tools, t), append(served, t.Definition().Name)
	}
	if b.uncovered != nil {
		without := b.uncovered(ctx, b.Caller, own, served)
		tools = slices.DeleteFunc(tools, func(t tool.Tool) bool { return slices.Contains(without, t.Definition().Name) })
	}
	for i, t := range tools {
		tools[i] = bounded{t, b.limits.ToolTimeout, b.clock}
		if b.Wrap != nil {
			tools[i] = b.Wrap(tools[i])
		}
	}
	return tools, nil
}

// bounded limits how long a call may take.
type bounded struct {
	tool.Tool
	limit time.Duration
	clock clock.WithDelayedExecution
}

var errToolTimeout = errors.New("the call of the tool took too long")

// Call calls the tool and ends it in time.
func (t bounded) Call(ctx context.Context, raw json.RawMessage) (any, error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	timer := t.clock.AfterFunc(t.limit, func() { cancel(errToolTimeout) })
	defer timer.Stop()
	out, err := t.Tool.Call(ctx, raw)
	if typed, ok := errors.AsType[*tool.Error](err); ok && typed.Type == tool.TypeOutcomeUnknown {
		return nil, err
	}
	if err != nil && errors.Is(context.Cause(ctx), errToolTimeout) {
		return nil, tool.Errorf(tool.TypeTimeout, "the call took longer than the %s that the server allows (--chat-tool-timeout)", t.limit).Suggest("ask for less at a time, or look again later")
	}
	return out, err
}

// in returns an error if a namespace is given that is not that of the chat.
func (b *toolbox) in(namespace string) error {
	if namespace == "" || namespace == b.Namespace {
		return nil
	}
	return tool.Errorf(tool.TypePermissionDenied, "namespace: this chat works in namespace %s only", b.Namespace).
		Suggest("leave namespace out; the user can begin a chat in another namespace")
}

// Explain turns an error of the API into one for the model. It keeps the server's words, which say what is allowed.
func Explain(err error) error {
	status := apierrors.APIStatus(nil)
	if !errors.As(err, &status) {
		return tool.Errorf(tool.TypeUnavailable, "the server did not answer").Suggest("try again once")
	}
	s := status.Status()
	switch {
	case apierrors.IsForbidden(err), apierrors.IsUnauthorized(err):
		return tool.Errorf(tool.TypePermissionDenied, "%s", s.Message).Suggest("tell the user that they lack this permission; do not try to get around it")
	case apierrors.IsNotFound(err):
		return tool.Errorf(tool.TypeNotFound, "%s", s.Message).Suggest("check the name; list what there is")
	case apierrors.IsAlreadyExists(err):
		return tool.Errorf(tool.TypeAlreadyExists, "%s", s.Message).Suggest("choose another name, or use what exists")
	case apierrors.IsInvalid(err), apierrors.IsBadRequest(err), apierrors.IsRequestEntityTooLargeError(err):
		return tool.InvalidArguments("%s", s.Message)
	case apierrors.IsTooManyRequests(err):
		return tool.Errorf(tool.TypeLimitReached, "%s", s.Message).Suggest("wait before you try again")
	case apierrors.IsConflict(err):
		return tool.Errorf(tool.TypeUnavailable, "%s", s.Message).Suggest("look at the present state, then try again if it is still needed")
	}
	return tool.Errorf(tool.TypeUnavailable, "%s", s.Message)
}

// words returns what an error says to the model.
func words(err error) string {
	if e, ok := errors.AsType[*tool.Error](err); ok {
		return e.Message
	}
	return "it failed unexpectedly"
}

var notInNames = regexp.MustCompile(`[^a-z0-9-]+`)

// taskName returns the name of a task that the model calls name: with a prefix that only this session has, so that
// sessions do not take each other's names. A name that has the prefix already is kept.
func (b *toolbox) taskName(name string) string {
	name = strings.Trim(notInNames.ReplaceAllString(strings.ToLower(strings.TrimPrefix(name, b.Prefix)), "-"), "-")
	if name == "" {
		name = "task"
	}
	return v1alpha1.ShortName(b.Prefix+name, "", validation.LabelValueMaxLength)
}

// taskPrefix begins the names of all tasks that a session creates.
func taskPrefix(s *v1alpha1.Session) string {
	sum := sha256.Sum256([]byte(s.UID))
	return "chat-" + hex.EncodeToString(sum[:4]) + "-"
}

// labels are on everything that the chats of a session create.
func labels(s *v1alpha1.Session) map[string]string {
	return map[string]string{
		v1alpha1.LabelCreatedBy:   v1alpha1.CreatedByOrchestrator,
		v1alpha1.LabelChatSession: v1alpha1.SessionLabel(s.Name),
	}
}

// createTask creates a task, within the limit of the turn.
func (b *toolbox) createTask(ctx context.Context, t *v1alpha1.Task) (*v1alpha1.Task, error) {
	if int(b.created) >= b.limits.MaxTasksPerTurn {
		return nil, tool.Errorf(tool.TypeLimitReached, "this turn has created %d tasks, which is the most that is allowed", b.created).
			Suggest("say what is left to do; the user can ask for it in the next message")
	}
	b.mark(t)
	tasks := b.caller.CoreV1alpha1().Tasks(b.Namespace)
	made, err := tasks.Create(ctx, t, metav1.CreateOptions{FieldManager: fieldManager})
	if apierrors.IsAlreadyExists(err) {
		made, err = own(b, err, func() (*v1alpha1.Task, error) { return tasks.Get(ctx, t.Name, metav1.GetOptions{}) })
	}
	if err != nil {
		return nil, Explain(err)
	}
	b.created++
	return made, nil
}

// mark marks an object that is about to be created with the id of the call.
func (b *toolbox) mark(o metav1.Object) {
	if b.call != "" {
		all := maps.Clone(o.GetAnnotations())
		if all == nil {
			all = map[string]string{}
		}
		all[v1alpha1.AnnotationChatCall] = b.call
		o.SetAnnotations(all)
	}
}

// own returns the object that exists already if this same call created it before the server ended, otherwise the refusal.
func own[T metav1.Object](b *toolbox, refusal error, get func() (T, error)) (T, error) {
	var none T
	found, err := get()
	if err != nil || b.call == "" || found.GetAnnotations()[v1alpha1.AnnotationChatCall] != b.call {
		return none, refusal
	}
	return found, nil
}
