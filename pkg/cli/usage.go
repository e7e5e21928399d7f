// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"
)

// typoDistance is how many letters may differ for a command to be suggested.
const typoDistance = 2

// strict makes a command and its subcommands refuse unknown commands. Cobra prints the help of a
// group for an unknown command in it, and exits with 0. A script could then take a decision that
// was never made for one that was.
func strict(cmd *cobra.Command) {
	cmd.SuggestionsMinimumDistance = typoDistance
	if isGroup(cmd) {
		cmd.Args = cobra.ArbitraryArgs // RunE checks them, for a better message
		cmd.ValidArgsFunction = cobra.NoFileCompletions
		cmd.RunE = func(cmd *cobra.Command, args []string) error {
			if len(args) > 0 {
				return unknownCommand(cmd, args[0])
			}
			return cmd.Help()
		}
	} else if cmd.Args != nil {
		cmd.Args = countedArgs(cmd.Args)
	}
	for _, c := range cmd.Commands() {
		strict(c)
	}
}

// isGroup reports whether a command does nothing but hold others. One whose usage line names arguments, such as chat, runs
// as well.
func isGroup(cmd *cobra.Command) bool { return cmd.HasSubCommands() && cmd.Use == cmd.Name() }

// unknownCommand suggests the command that was probably meant, if there is one.
func unknownCommand(cmd *cobra.Command, word string) error {
	text := fmt.Sprintf("unknown command %q for %q", word, cmd.CommandPath())
	found := named(cmd, word)
	if len(found) == 0 {
		for _, name := range cmd.SuggestionsFor(word) {
			found = append(found, strconv.Quote(cmd.CommandPath()+" "+name))
		}
	}
	if len(found) == 0 {
		return fmt.Errorf("%s; %q lists the commands", text, cmd.CommandPath()+" --help")
	}
	return fmt.Errorf("%s; did you mean %s?", text, strings.Join(found, " or "))
}

// named returns the commands of other groups that have exactly this name.
func named(group *cobra.Command, word string) []string {
	var found []string
	for _, g := range group.Root().Commands() {
		for _, c := range g.Commands() {
			if g != group && (c.Name() == word || c.HasAlias(word)) {
				found = append(found, strconv.Quote(c.CommandPath()))
			}
		}
	}
	return found
}

// countedArgs makes the error say which argument is missing or superfluous.
func countedArgs(check cobra.PositionalArgs) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		if check(cmd, args) == nil {
			return nil
		}
		for n := range slices.Backward(args) {
			if check(cmd, args[:n]) == nil {
				return fmt.Errorf("unexpected argument %q; usage: %s", args[n], cmd.UseLine())
			}
		}
		return fmt.Errorf("an argument is missing; usage: %s", cmd.UseLine())
	}
}

// flagError adds where the flags are described. If a flag is unknown because its command is, the
// error names the command instead.
func flagError(cmd *cobra.Command, err error) error {
	if args := cmd.Flags().Args(); cmd.HasSubCommands() && len(args) > 0 {
		return unknownCommand(cmd, args[0])
	}
	return fmt.Errorf("%w; %q lists the flags", err, cmd.CommandPath()+" --help")
}

// helpCommand is "platform help". It fails for a command that does not exist.
func helpCommand() *cobra.Command {
	return &cobra.Command{
		Use: "help [COMMAND]", Short: "Help about a command", ValidArgsFunction: completeCommands,
		RunE: func(cmd *cobra.Command, args []string) error {
			at := cmd.Root()
			for _, word := range args {
				next, _, err := at.Find([]string{word})
				if err != nil || next == at {
					return unknownCommand(at, word)
				}
				at = next
			}
			at.InitDefaultHelpFlag()
			return at.Help()
		},
	}
}

func completeCommands(cmd *cobra.Command, args []string, _ string) ([]cobra.Completion, cobra.ShellCompDirective) {
	at, _, err := cmd.Root().Find(args)
	if err != nil {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	var names []cobra.Completion
	for _, c := range at.Commands() {
		if c.IsAvailableCommand() {
			names = append(names, cobra.CompletionWithDesc(c.Name(), c.Short))
		}
	}
	return names, cobra.ShellCompDirectiveNoFileComp
}

// helper prints help, unless it was requested for a command that does not exist; the error is then
// in unknown. Cobra itself treats every call with --help as a success.
type helper struct {
	print   func(*cobra.Command, []string)
	unknown error
}

func (h *helper) help(cmd *cobra.Command, args []string) {
	if words := cmd.Flags().Args(); isGroup(cmd) && len(words) > 0 {
		h.unknown = unknownCommand(cmd, words[0])
		return
	}
	h.print(cmd, args)
}

// usage prints the usage of a command. A group is runnable only to report unknown commands, so its usage shows only the line
// about its commands. A template would say so in one line, and the program would keep all methods of all its types for it.
func usage(cmd *cobra.Command, standard func(*cobra.Command) error) error {
	if cmd.HasAvailableSubCommands() && isGroup(cmd) {
		run, runE := cmd.Run, cmd.RunE
		cmd.Run, cmd.RunE = nil, nil
		defer func() { cmd.Run, cmd.RunE = run, runE }()
	}
	return standard(cmd)
}

// execute runs the command with these rules.
func execute(run func() error, root *cobra.Command) error {
	root.SetHelpCommand(helpCommand())
	root.InitDefaultHelpCmd()
	root.InitDefaultCompletionCmd()
	standard := root.UsageFunc()
	root.SetUsageFunc(func(cmd *cobra.Command) error { return usage(cmd, standard) })
	root.SetFlagErrorFunc(flagError)
	h := &helper{print: root.HelpFunc()}
	root.SetHelpFunc(h.help)
	strict(root)
	return errors.Join(run(), h.unknown)
}
