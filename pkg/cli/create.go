// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/intstr"
	"sigs.k8s.io/yaml"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
	typed "github.com/platform-ai/platform/pkg/generated/clientset/versioned/typed/core/v1alpha1"
)

// newTask holds the flags that describe a task.
type newTask struct {
	file, name, kind, agent, provider, model, image, session string
	command, args, env                                       []string
	timeout                                                  time.Duration
	schedule, zone                                           string
	suspend, watch                                           bool
	workspace                                                newWorkspace
	priority                                                 int32
}

// newWorkspace holds the flags that describe the repository of a task.
type newWorkspace struct {
	intent, repo, branch, ref, path, credential, credentialKey   string
	write                                                        bool
	publication, pushBranch                                      string
	forge, forgeKey, base                                        string
	createPR                                                     bool
	publicationRead, publicationReadKey, publisher, publisherKey string
	source, published                                            v1alpha1.RepositoryIdentity
	prior                                                        string
}

func (n *newWorkspace) add(f *pflag.FlagSet) {
	f.StringVar(&n.repo, "git-repo", "", "repository that the task works on: an https URL without credentials")
	f.StringVar(&n.branch, "branch", "", "branch of the repository (default: its default branch)")
	f.StringVar(&n.ref, "ref", "", "commit, tag or ref of the repository")
	f.StringVar(&n.path, "sub-path", "", "folder of the repository that the task gets")
	f.StringVar(&n.intent, "workspace-intent", "", "read or write")
	f.StringVar(&n.credential, "read-credential", "", "Secret with the token that the repository is read with")
	f.StringVar(&n.credentialKey, "read-credential-key", "", "key of the token in that Secret (default token)")
	f.BoolVar(&n.write, "write", false, "publish what the task changes in the repository: short for --workspace-intent write")
	f.StringVar(&n.publication, "publication-git-repo", "", "repository that changes are published to (default: that of --git-repo)")
	f.StringVar(&n.pushBranch, "push-branch", "", "branch that changes are published as (default: one is made)")
	f.StringVar(&n.publisher, "publication-credential", "", "Secret with the token that the branch is pushed with")
	f.StringVar(&n.publisherKey, "publication-credential-key", "", "key of the token in that Secret (default token)")
	f.StringVar(&n.publicationRead, "publication-read-credential", "", "Secret with the token that the branch is looked at with, before and after the push")
	f.BoolVar(&n.createPR, "create-pr", false, "open a pull request for the branch")
	f.StringVar(&n.base, "pr-base-branch", "", "branch that the pull request goes to (default: the default branch)")
	f.StringVar(&n.forge, "forge-credential", "", "Secret with the token that the pull request is opened with")
	f.StringVar(&n.forgeKey, "forge-credential-key", "", "key of the token in that Secret (default token)")
	f.StringVar(&n.publicationReadKey, "publication-read-credential-key", "", "key of the token in that Secret (default token)")
	f.StringVar(&n.source.ID, "source-repository-id", "", "the code host's id of the repository; servers that ask no code host for it refuse it")
	f.StringVar(&n.source.Provider, "source-repository-provider", "", "the code host that has it")
	f.StringVar(&n.published.ID, "publication-repository-id", "", "the code host's id of the repository that changes are published to")
	f.StringVar(&n.published.Provider, "publication-repository-provider", "", "the code host that has it")
	f.StringVar(&n.prior, "prior-task", "", "earlier task of the same repository with whose changes the task begins")
}

// setting is what a flag that was given sets in a task.
type setting struct {
	flag string
	put  func()
}

// settings returns what the flags set in the workspace of a task.
func (n *newWorkspace) settings(s *v1alpha1.TaskSpec) []setting {
	of := func() *v1alpha1.TaskWorkspace {
		if s.Workspace == nil {
			s.Workspace = &v1alpha1.TaskWorkspace{}
		}
		return s.Workspace
	}
	made := func(ref **v1alpha1.WorkspaceCredentialReference) *v1alpha1.WorkspaceCredentialReference {
		if *ref == nil {
			*ref = &v1alpha1.WorkspaceCredentialReference{}
		}
		return *ref
	}
	read := func() *v1alpha1.WorkspaceCredentialReference { return made(&of().ReadCredentialRef) }
	look := func() *v1alpha1.WorkspaceCredentialReference { return made(&of().PublicationReadCredentialRef) }
	push := func() *v1alpha1.WorkspaceCredentialReference { return made(&of().PublicationCredentialRef) }
	source := func() *v1alpha1.RepositoryIdentity { return identity(&of().SourceRepository) }
	published := func() *v1alpha1.RepositoryIdentity { return identity(&of().PublicationRepository) }
	return []setting{
		{"source-repository-id", func() { source().ID = n.source.ID }},
		{"source-repository-provider", func() { source().Provider = n.source.Provider }},
		{"publication-repository-id", func() { published().ID = n.published.ID }},
		{"publication-repository-provider", func() { published().Provider = n.published.Provider }},
		{"prior-task", func() { s.PriorTaskRef = &v1alpha1.NamespacedReference{Name: n.prior} }},
		{"git-repo", func() { of().GitRepo = n.repo }},
		{"branch", func() { of().Branch = n.branch }},
		{"ref", func() { of().Ref = n.ref }},
		{"sub-path", func() { of().SubPath = n.path }},
		{"workspace-intent", func() { of().Intent = v1alpha1.WorkspaceIntent(n.intent) }},
		{"read-credential", func() { read().Name = n.credential }},
		{"read-credential-key", func() { read().Key = n.credentialKey }},
		{"write", func() {
			if of().Intent = v1alpha1.WorkspaceRead; n.write {
				of().Intent = v1alpha1.WorkspaceWrite
			}
		}},
		{"create-pr", func() { of().CreatePR = n.createPR }},
		{"pr-base-branch", func() { of().PRBaseBranch = n.base }},
		{"forge-credential", func() { made(&of().ForgeCredentialRef).Name = n.forge }},
		{"forge-credential-key", func() { made(&of().ForgeCredentialRef).Key = n.forgeKey }},
		{"publication-git-repo", func() { of().PublicationGitRepo = n.publication }},
		{"push-branch", func() { of().PushBranch = n.pushBranch }},
		{"publication-credential", func() { push().Name = n.publisher }},
		{"publication-credential-key", func() { push().Key = n.publisherKey }},
		{"publication-read-credential", func() { look().Name = n.publicationRead }},
		{"publication-read-credential-key", func() { look().Key = n.publicationReadKey }},
	}
}

// identity returns the identity of a repository, which is made if there is none.
func identity(of **v1alpha1.RepositoryIdentity) *v1alpha1.RepositoryIdentity {
	if *of == nil {
		*of = &v1alpha1.RepositoryIdentity{}
	}
	return *of
}

func taskCreate(api *server, term *terminal) *cobra.Command {
	var n newTask
	cmd := &cobra.Command{
		Use: "create [PROMPT]", Aliases: []string{"run"}, Short: "Create a task from a prompt, a command or a file", Args: cobra.MaximumNArgs(1),
		Example: `  platform task create "Find the largest prime below 1000" --agent coder --watch
  platform task create --command make --arg test --git-repo https://github.com/example/shop --branch main
  platform task create "Mend the failing test" --agent coder -f repository.yaml --write --push-branch mend-test
  platform task create -f task.yaml`,
	}
	f := cmd.Flags()
	f.StringVarP(&n.file, "filename", "f", "", "a Task as YAML or JSON; - is standard input; flags take precedence")
	f.StringVar(&n.name, "name", "", "name of the task (default: one is made)")
	f.StringVar(&n.kind, "type", "", "ai, container or agent (default: ai with a prompt, else container)")
	f.StringVar(&n.agent, "agent", "", "Agent that does the work")
	f.StringVar(&n.provider, "provider", "", "Provider of the model")
	f.StringVar(&n.model, "model", "", "model that is asked")
	f.StringVar(&n.image, "image", "", "image of a container task")
	f.StringArrayVar(&n.command, "command", nil, "program of a container task and its first arguments; repeatable")
	f.StringArrayVar(&n.args, "arg", nil, "argument of a container task; repeatable")
	f.StringArrayVar(&n.env, "env", nil, "NAME=VALUE for the worker; repeatable")
	f.StringVar(&n.session, "session", "", "session that the task continues; made when it does not exist")
	f.DurationVar(&n.timeout, "timeout", 0, "limit in wall-clock time, for example 30m")
	f.Int32Var(&n.priority, "priority", 0, "from 0 to 1000; of the tasks that wait to start, higher goes first (default 500)")
	f.StringVar(&n.schedule, "schedule", "", "cron schedule that makes the task a template")
	f.StringVar(&n.zone, "timezone", "", "time zone of the schedule")
	f.BoolVar(&n.suspend, "suspend", false, "do not start runs of the schedule yet")
	n.workspace.add(f)
	f.BoolVarP(&n.watch, "watch", "w", false, "follow the task to its end and print its result; the exit code reports the outcome")
	api.offerNames(cmd, "agents", "agent")
	api.offerNames(cmd, "providers", "provider")
	api.offerNames(cmd, "sessions", "session")
	kinds := []string{string(v1alpha1.TaskTypeAI), string(v1alpha1.TaskTypeContainer), string(v1alpha1.TaskTypeAgent)}
	offer(cmd, "type", cobra.FixedCompletions(kinds, cobra.ShellCompDirectiveNoFileComp))
	o := addOutput(cmd, asTable, asJSON, asYAML, asName)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		t, err := describedTask(term, cmd, &n, args)
		if err != nil {
			return err
		}
		return createTask(cmd.Context(), api, term, t, n.watch, *o)
	}
	return cmd
}

// describedTask builds the task from the file, the flags and the prompt.
func describedTask(term *terminal, cmd *cobra.Command, n *newTask, args []string) (*v1alpha1.Task, error) {
	t := &v1alpha1.Task{}
	if n.file != "" {
		b, err := term.readFile(n.file)
		if err != nil {
			return nil, fmt.Errorf("-f: %w", err)
		}
		if err := yaml.UnmarshalStrict(b, t); err != nil {
			return nil, fmt.Errorf("-f %s: %w", n.file, err)
		}
	}
	s := &t.Spec
	if len(args) == 1 {
		s.Prompt = args[0]
	}
	set := cmd.Flags().Changed
	for _, f := range append(n.workspace.settings(s), []setting{
		{"name", func() { t.Name = n.name }},
		{"type", func() { s.Type = v1alpha1.TaskType(n.kind) }},
		{"agent", func() { s.AgentRef = &v1alpha1.NamespacedReference{Name: n.agent} }},
		{"provider", func() { ai(s).ProviderRef = &v1alpha1.NamespacedReference{Name: n.provider} }},
		{"model", func() { ai(s).Model = n.model }},
		{"image", func() { s.Image = n.image }},
		{"command", func() { s.Command = n.command }},
		{"arg", func() { s.Args = n.args }},
		{"session", func() { s.SessionRef = &v1alpha1.TaskSessionReference{Name: n.session, Create: true} }},
		{"timeout", func() { s.Timeout = v1alpha1.DurationOf(n.timeout) }},
		{"priority", func() { s.Priority = &n.priority }},
		{"schedule", func() { s.Schedule = n.schedule }},
		{"timezone", func() { s.TimeZone = n.zone }},
		{"suspend", func() { s.Suspend = n.suspend }},
	}...) {
		if set(f.flag) {
			f.put()
		}
	}
	for _, e := range n.env {
		name, value, ok := strings.Cut(e, "=")
		if !ok {
			return nil, fmt.Errorf("--env: %q: must be NAME=VALUE", name)
		}
		s.Env = append(s.Env, corev1.EnvVar{Name: name, Value: value})
	}
	if s.Type == "" {
		s.Type = v1alpha1.TaskTypeContainer
		if s.Prompt != "" || s.AI != nil {
			s.Type = v1alpha1.TaskTypeAI
		}
	}
	if t.Name == "" && t.GenerateName == "" {
		t.GenerateName = "task-"
	}
	if s.Type == v1alpha1.TaskTypeContainer && len(s.Command) == 0 && s.Image == "" && n.file == "" {
		return nil, errors.New("say what to do: a PROMPT, --command or -f")
	}
	return t, nil
}

func ai(s *v1alpha1.TaskSpec) *v1alpha1.TaskAI {
	if s.AI == nil {
		s.AI = &v1alpha1.TaskAI{}
	}
	return s.AI
}

func createTask(ctx context.Context, api *server, term *terminal, t *v1alpha1.Task, watch bool, f format) error {
	made, c, err := submitTask(ctx, api, term, t)
	if err != nil {
		return err
	}
	if err := printCreated(term, made, "Task", f); err != nil || !watch {
		return err
	}
	api.overrides.Context.Namespace = made.Namespace
	return followToResult(ctx, api, term, c, made.Name)
}

// submitTask creates a task, and returns it and the client of its namespace.
func submitTask(ctx context.Context, api *server, term *terminal, t *v1alpha1.Task) (*v1alpha1.Task, typed.TaskInterface, error) {
	c, namespace, err := api.client()
	if err != nil {
		return nil, nil, err
	}
	if t.Namespace != "" {
		namespace = t.Namespace
	}
	warnOfAgent(ctx, term, c, namespace, t)
	made, err := c.Tasks(namespace).Create(ctx, t, metav1.CreateOptions{FieldManager: "platform"})
	return made, c.Tasks(namespace), err
}

// object is what all kinds of the API group have in common.
type object interface {
	metav1.Object
	runtime.Object
}

// printCreated prints an object of the API group that was created.
func printCreated(term *terminal, obj object, kind string, f format) error {
	return printChanged(term, obj, kind, "created", f)
}

// printChanged prints an object of the API group with which something was done.
func printChanged(term *terminal, obj object, kind, done string, f format) error {
	word := strings.ToLower(kind)
	switch f {
	case asJSON, asYAML:
		obj.GetObjectKind().SetGroupVersionKind(v1alpha1.SchemeGroupVersion.WithKind(kind))
		return term.write(obj, f)
	case asName:
		return term.say("%s.%s/%s", word, v1alpha1.GroupName, obj.GetName())
	}
	return term.say("%s %s %s", word, obj.GetName(), done)
}

// warnOfAgent says that the Agent of a new task does not exist: the server accepts the task, since Agents may be made after it, and fails
// it if that does not happen within seconds.
func warnOfAgent(ctx context.Context, term *terminal, c typed.CoreV1alpha1Interface, namespace string, t *v1alpha1.Task) {
	ref := t.Spec.AgentRef
	if ref == nil {
		return
	}
	if _, err := c.Agents(cmp.Or(ref.Namespace, namespace)).Get(ctx, ref.Name, metav1.GetOptions{}); apierrors.IsNotFound(err) {
		note(term.Err, fmt.Sprintf("Warning: there is no agent %s; the task fails unless it is created within seconds", ref.Name))
	}
}

// followToResult prints the events of a task as they arrive and, if it succeeds, its result.
func followToResult(ctx context.Context, api *server, term *terminal, c typed.TaskInterface, task string) error {
	if err := followTask(ctx, api, term, task, eventFlags{}, asTable); err != nil {
		return err
	}
	return printResultOf(ctx, term, c, task, "\n")
}

// printResultOf prints the result of a task that succeeded, after a text. A command may have printed nothing, and then this does so, too.
func printResultOf(ctx context.Context, term *terminal, c typed.TaskInterface, task, before string) error {
	r, err := c.GetResult(ctx, task, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return nil
	}
	if err != nil {
		return err
	}
	return printResult(term, before+r.Result)
}

func taskFork(api *server, term *terminal) *cobra.Command {
	var agent, name, prompt, after, key string
	var watch, shared bool
	cmd := &cobra.Command{
		Use: "fork TASK", Short: "Make a task that continues another from a point of its history", Args: cobra.ExactArgs(1), ValidArgsFunction: api.names("tasks"),
		Example: `  platform task fork primes --after 12 --agent coder --prompt "Try a sieve instead"
  platform task fork primes --idempotency-key $BUILD_ID --after 12   # repeatable`,
	}
	f := cmd.Flags()
	f.StringVar(&after, "after", v1alpha1.ForkLatest, "last event of the history: 0, a sequence or latest")
	f.StringVar(&agent, "agent", "", "Agent of the fork (default: that of the source)")
	f.StringVar(&name, "name", "", "name of the fork (default: one is made)")
	f.StringVar(&prompt, "prompt", "", "prompt of the fork (default: that of the source)")
	f.StringVar(&key, "idempotency-key", "", "a repeated request with the same key finds the first fork")
	f.BoolVar(&shared, "share-session", false, "use the session of the source (default: a session that begins with what it held at that point)")
	f.BoolVarP(&watch, "watch", "w", false, "follow the fork to its end and print its result; the exit code reports the outcome")
	api.offerNames(cmd, "agents", "agent")
	o := addOutput(cmd, asTable, asJSON, asYAML, asName)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		seq := intstr.Parse(after)
		spec := v1alpha1.TaskForkSpec{AfterSeq: &seq, NewTaskName: name, Prompt: prompt, IdempotencyKey: key}
		if shared {
			spec.Session = v1alpha1.ForkSessionShared
		}
		if agent != "" {
			spec.AgentRef = &v1alpha1.NamespacedReference{Name: agent}
		}
		c, namespace, err := api.client()
		if err != nil {
			return err
		}
		made, err := c.Tasks(namespace).Fork(cmd.Context(), args[0], &v1alpha1.TaskFork{Spec: spec}, metav1.CreateOptions{})
		if err != nil {
			return err
		}
		if err := printFork(term, made, *o); err != nil || !watch {
			return err
		}
		return followToResult(cmd.Context(), api, term, c.Tasks(namespace), made.Status.NewTaskName)
	}
	return cmd
}

func printFork(term *terminal, f *v1alpha1.TaskFork, o format) (err error) {
	s := &f.Status
	switch o {
	case asJSON, asYAML:
		return term.write(s, o)
	case asName:
		_, err = fmt.Fprintln(term.Out, "task.core.platform.ai/"+s.NewTaskName)
	default:
		word := "created"
		if s.Replayed {
			word = "exists already"
		}
		cut := ""
		if s.ForkContext != nil && s.ForkContext.Truncated {
			cut = ", shortened"
		}
		_, err = fmt.Fprintf(term.Out, "task %s %s: %s after event %d (%s of history%s)\n", s.NewTaskName, word, s.SourceTaskName, s.AfterSeq, many(historyOf(s), "event"), cut)
	}
	return err
}

func historyOf(s *v1alpha1.TaskForkStatus) int {
	if s.ForkContext == nil {
		return 0
	}
	return len(s.ForkContext.Events)
}
