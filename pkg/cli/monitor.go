// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/util/retry"
	"sigs.k8s.io/yaml"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
	typed "github.com/platform-ai/platform/pkg/generated/clientset/versioned/typed/core/v1alpha1"
	"github.com/platform-ai/platform/pkg/repomonitor"
)

const monitors = "repositorymonitors"

func monitorCommand(api *server, term *terminal) *cobra.Command {
	cmd := &cobra.Command{Use: "monitor", Aliases: []string{"monitors"}, Short: "Monitors of repositories: their pull requests and issues, and the work on these"}
	remove := eachNamed(api, "delete MONITOR...", "Remove monitors and all that they recorded", monitors, func(ctx context.Context, c typed.CoreV1alpha1Interface, namespace, name string) error {
		if err := c.RepositoryMonitors(namespace).Delete(ctx, name, metav1.DeleteOptions{}); err != nil {
			return err
		}
		return term.say("repositorymonitor %s deleted", name)
	})
	remove.Aliases = []string{"rm"}
	cmd.AddCommand(
		listOf(api, term, monitors, "List monitors"), getOf(api, term, "MONITOR", monitors, "Show monitors"), monitorCreate(api, term), monitorUpdate(api, term), remove,
		monitorRun(api, term), monitorWatch(api, term), monitorDoctor(api, term), monitorEvents(api, term),
		labelsCommand(api, term), issueCommand(api, term), pullRequestCommand(api, term),
	)
	cmd.AddCommand(recordCommands(api, term)...)
	return cmd
}

// monitorOf reads a monitor from a file.
func monitorOf(term *terminal, file string) (*v1alpha1.RepositoryMonitor, error) {
	b, err := term.readFile(file)
	if err != nil {
		return nil, fmt.Errorf("-f: %w", err)
	}
	m := &v1alpha1.RepositoryMonitor{}
	if err := yaml.UnmarshalStrict(b, m); err != nil {
		return nil, fmt.Errorf("-f %s: %w", file, err)
	}
	if m.Kind != "" && m.Kind != "RepositoryMonitor" {
		return nil, fmt.Errorf("-f %s: kind: %q: must be RepositoryMonitor", file, m.Kind)
	}
	return m, nil
}

// withFile adds -f, which is required, to a command that reads a monitor.
func withFile(cmd *cobra.Command, file *string) {
	cmd.Flags().StringVarP(file, "filename", "f", "", "a RepositoryMonitor as YAML or JSON; - is standard input")
	_ = cmd.MarkFlagRequired("filename") // the flag exists
}

// clientOf returns a client, and the namespace that an object of a file names, or else that of the flags.
func (api *server) clientOf(m *v1alpha1.RepositoryMonitor) (typed.RepositoryMonitorInterface, error) {
	c, namespace, err := api.client()
	if err != nil {
		return nil, err
	}
	if m.Namespace != "" {
		namespace = m.Namespace
	}
	return c.RepositoryMonitors(namespace), nil
}

func monitorCreate(api *server, term *terminal) *cobra.Command {
	var file, name string
	cmd := &cobra.Command{Use: "create -f FILE", Short: "Create a monitor from a file", Args: cobra.NoArgs}
	withFile(cmd, &file)
	cmd.Flags().StringVar(&name, "name", "", "name of the monitor (default: the one in the file)")
	f := addOutput(cmd, asTable, asJSON, asYAML, asName)
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		m, err := monitorOf(term, file)
		if err != nil {
			return err
		}
		if name != "" {
			m.Name = name
		}
		c, err := api.clientOf(m)
		if err != nil {
			return err
		}
		made, err := c.Create(cmd.Context(), m, metav1.CreateOptions{FieldManager: "platform"})
		if err != nil {
			return err
		}
		return printCreated(term, made, "RepositoryMonitor", *f)
	}
	return cmd
}

func monitorUpdate(api *server, term *terminal) *cobra.Command {
	var file string
	cmd := &cobra.Command{
		Use: "update [MONITOR] -f FILE", Short: "Replace the spec of a monitor by the one of a file", Args: cobra.MaximumNArgs(1), ValidArgsFunction: api.names(monitors),
		Long: "Replace the spec of a monitor by the one of a file, and its labels and annotations if the file has some. A resourceVersion in the\nfile must be the present one.",
	}
	withFile(cmd, &file)
	f := addOutput(cmd, asTable, asJSON, asYAML, asName)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		m, err := monitorOf(term, file)
		if err != nil {
			return err
		}
		if len(args) == 1 {
			m.Name = args[0]
		}
		if m.Name == "" {
			return errors.New("name the monitor, here or in the file (metadata.name)")
		}
		c, err := api.clientOf(m)
		if err != nil {
			return err
		}
		stored, err := replaced(cmd.Context(), c, m, metav1.UpdateOptions{FieldManager: "platform"})
		if err != nil {
			return err
		}
		return printChanged(term, stored, "RepositoryMonitor", "updated", *f)
	}
	return cmd
}

// replaced writes the spec of a monitor, and its labels and annotations if it has some, over those that are stored.
func replaced(ctx context.Context, c typed.RepositoryMonitorInterface, m *v1alpha1.RepositoryMonitor, o metav1.UpdateOptions) (stored *v1alpha1.RepositoryMonitor, err error) {
	err = retry.RetryOnConflict(retry.DefaultRetry, func() error {
		now, err := c.Get(ctx, m.Name, metav1.GetOptions{})
		if err != nil {
			return err
		}
		now.Spec = m.Spec
		if m.Labels != nil {
			now.Labels = m.Labels
		}
		if m.Annotations != nil {
			now.Annotations = m.Annotations
		}
		if m.ResourceVersion != "" {
			now.ResourceVersion = m.ResourceVersion
		}
		stored, err = c.Update(ctx, now, o)
		return err
	})
	return stored, err
}

// postBelow creates a subresource of an object and decodes the answer.
func postBelow(ctx context.Context, c typed.CoreV1alpha1Interface, namespace, resource, name, sub string, body, into runtime.Object) error {
	return c.RESTClient().Post().Namespace(namespace).Resource(resource).Name(name).SubResource(sub).Body(body).Do(ctx).Into(into)
}

func monitorRun(api *server, term *terminal) *cobra.Command {
	asked := &v1alpha1.MonitorRunRequest{}
	cmd := &cobra.Command{
		Use: "run MONITOR", Short: "Have a monitor look at its repository now", Args: cobra.ExactArgs(1), ValidArgsFunction: api.names(monitors),
		Long:    "Have a monitor look at its repository now, or at one pull request or issue. It is refused while a run of the monitor is active.",
		Example: "  platform monitor run shop\n  platform monitor run shop --target-kind pull_request --target-number 7",
	}
	cmd.Flags().StringVar((*string)(&asked.TargetKind), "target-kind", "", "only pull_request or issue (default: all that the monitor looks after)")
	cmd.Flags().Int64Var(&asked.TargetNumber, "target-number", 0, "only the pull request or issue with this number")
	cmd.Flags().StringVar(&asked.TargetSHA, "target-sha", "", "the head of the pull request that the run is for")
	offerTargets(cmd, "target-kind")
	f := addOutput(cmd, asTable, asJSON, asYAML, asName)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		c, namespace, err := api.client()
		if err != nil {
			return err
		}
		run := &v1alpha1.MonitorRun{}
		if err := postBelow(cmd.Context(), c, namespace, monitors, args[0], "runs", asked, run); err != nil {
			return err
		}
		return printCreated(term, run, "MonitorRun", *f)
	}
	return cmd
}

// offerTargets completes a flag with what monitors look after.
func offerTargets(cmd *cobra.Command, flag string) {
	offer(cmd, flag, cobra.FixedCompletions([]string{string(v1alpha1.MonitorPullRequest), string(v1alpha1.MonitorIssue)}, cobra.ShellCompDirectiveNoFileComp))
}

func monitorWatch(api *server, term *terminal) *cobra.Command {
	var interval time.Duration
	cmd := &cobra.Command{
		Use: "watch MONITOR", Short: "Show where a monitor is, whenever that has changed", Args: cobra.ExactArgs(1), ValidArgsFunction: api.names(monitors),
		Long: "Show where a monitor is, whenever that has changed, until you stop. What it works on is shown by platform monitor items MONITOR -w\nand platform monitor work-actions list --name MONITOR -w.",
	}
	cmd.Flags().DurationVar(&interval, "interval", 10*time.Second, "how often to look")
	f := addOutput(cmd, objectFormats...)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if interval <= 0 {
			return errors.New("--interval: must be longer than 0s")
		}
		c, namespace, err := api.client()
		if err != nil {
			return err
		}
		ctx, p, shown := cmd.Context(), term.objectPrinter(*f, false), ""
		for {
			obj, err := fetch(ctx, c.RESTClient().Get().Namespace(namespace).Resource(monitors).Name(args[0]), *f)
			switch {
			case err == nil && revisionOf(obj) != shown:
				shown = revisionOf(obj)
				if err := term.printAnswer(p, obj); err != nil {
					return err
				}
			case err != nil && (shown == "" || !temporary(err)):
				return err
			}
			select {
			case <-ctx.Done():
				return ctx.Err()
			case <-term.clock.After(interval):
			}
		}
	}
	return cmd
}

// labelsCommand has the labels of a monitor checked.
func labelsCommand(api *server, term *terminal) *cobra.Command {
	top := &cobra.Command{Use: "trigger-labels", Short: "Labels of the code host that are commands"}
	var file string
	cmd := &cobra.Command{
		Use: "validate -f FILE", Short: "Have the server check the labels of a monitor that is in a file, and list what they do", Args: cobra.NoArgs,
		Long: "Have the server check the labels of a monitor that is in a file, and list what they do. Nothing is stored, but you need the\npermission to create or update the monitor. What else is wrong with it is an error, too.",
	}
	withFile(cmd, &file)
	f := addOutput(cmd, asTable, asJSON, asYAML)
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		m, err := monitorOf(term, file)
		if err != nil {
			return err
		}
		c, err := api.clientOf(m)
		if err != nil {
			return err
		}
		dry := []string{metav1.DryRunAll}
		checked, err := c.Create(cmd.Context(), m, metav1.CreateOptions{DryRun: dry})
		if apierrors.IsAlreadyExists(err) {
			checked, err = replaced(cmd.Context(), c, m, metav1.UpdateOptions{DryRun: dry})
		}
		if err != nil {
			return err
		}
		return term.printLabels(&checked.Spec, *f)
	}
	top.AddCommand(cmd)
	return top
}

// triggerLabel is a label that is a command.
type triggerLabel struct {
	TargetKind v1alpha1.MonitorTargetKind `json:"targetKind"`
	Label      string                     `json:"label"`
	Intent     v1alpha1.MonitorIntent     `json:"intent"`
}

func (term *terminal) printLabels(s *v1alpha1.RepositoryMonitorSpec, f format) error {
	var all []triggerLabel
	rows := [][]string{{"LABEL", "OF", "COMMAND"}}
	for _, kind := range []v1alpha1.MonitorTargetKind{v1alpha1.MonitorIssue, v1alpha1.MonitorPullRequest} {
		for _, l := range repomonitor.CommandLabels(s, kind) {
			all = append(all, triggerLabel{kind, l.Label, l.Intent})
			rows = append(rows, []string{clean(l.Label), string(kind), string(l.Intent)})
		}
	}
	if !s.Triggers.GitHub.Labels.Enabled {
		note(term.Err, "Warning: no label is a command, because spec.triggers.github.labels.enabled is not set")
	}
	if f != asTable {
		return term.write(all, f)
	}
	return term.columns(rows)
}
