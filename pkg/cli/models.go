// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"encoding/json"
	"fmt"

	"github.com/spf13/cobra"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// modelRow is one model that may be asked for.
type modelRow struct {
	// Name is what a task's spec.ai.model says, or a client of a vendor's API.
	Name string `json:"name"`
	// Provider answers; empty if the server's list does not say.
	Provider string `json:"provider,omitempty"`
	// Default says that it is the Provider's default model.
	Default bool `json:"default,omitempty"`
}

func modelsCommand(api *server, term *terminal) *cobra.Command {
	top := &cobra.Command{Use: "models", Aliases: []string{"model"}, Short: "Models that can be asked"}
	var compat string
	cmd := &cobra.Command{
		Use: "list", Aliases: []string{"ls"}, Short: "List the default models of Providers, or the names that clients of a vendor's API may use", Args: cobra.NoArgs,
		Example: "  platform models list\n  platform models list --compat anthropic --server https://127.0.0.1:8443",
	}
	cmd.Flags().StringVar(&compat, "compat", "", "what GET /openai/v1/models or /anthropic/v1/models answers: openai or anthropic")
	offer(cmd, "compat", cobra.FixedCompletions([]string{"openai", "anthropic"}, cobra.ShellCompDirectiveNoFileComp))
	f := addOutput(cmd, asTable, asJSON, asYAML)
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		var rows []modelRow
		var err error
		switch compat {
		case "":
			rows, err = defaultModels(api, cmd)
		case "openai", "anthropic":
			rows, err = compatModels(api, cmd, compat)
		default:
			err = fmt.Errorf("--compat: %q: must be openai or anthropic", compat)
		}
		if err != nil {
			return err
		}
		if *f != asTable {
			return term.write(rows, *f)
		}
		if len(rows) == 0 {
			note(term.Err, "nothing found")
			return nil
		}
		cells := [][]string{{"NAME", "PROVIDER"}}
		for _, r := range rows {
			cells = append(cells, []string{r.Name, r.Provider})
		}
		return term.columns(cells)
	}
	top.AddCommand(cmd)
	return top
}

// defaultModels lists the default model of each Provider of the namespace.
func defaultModels(api *server, cmd *cobra.Command) ([]modelRow, error) {
	c, namespace, err := api.client()
	if err != nil {
		return nil, err
	}
	list, err := c.Providers(namespace).List(cmd.Context(), metav1.ListOptions{})
	if err != nil {
		return nil, err
	}
	rows := []modelRow{}
	for i := range list.Items {
		if p := &list.Items[i]; p.Spec.DefaultModel != "" {
			rows = append(rows, modelRow{Name: p.Spec.DefaultModel, Provider: p.Name, Default: true})
		}
	}
	return rows, nil
}

// compatModels lists what a vendor's API lists, in the shape of OpenAI's.
func compatModels(api *server, cmd *cobra.Command, vendor string) ([]modelRow, error) {
	c, namespace, err := api.client()
	if err != nil {
		return nil, err
	}
	raw, err := c.RESTClient().Get().AbsPath(vendor, "v1", "models").Param("namespace", namespace).Do(cmd.Context()).Raw()
	if apierrors.IsNotFound(err) {
		return nil, fmt.Errorf("the server has no /%s/v1/models: kube-apiserver does not lead to the vendors' APIs; give the address of the platform's own server or router with --server", vendor)
	}
	if err != nil {
		return nil, err
	}
	var list struct {
		Data []struct {
			ID      string `json:"id"`
			OwnedBy string `json:"owned_by"`
		} `json:"data"`
	}
	if err := json.Unmarshal(raw, &list); err != nil {
		return nil, fmt.Errorf("answer of the server: %w", err)
	}
	rows := []modelRow{}
	for _, m := range list.Data {
		rows = append(rows, modelRow{Name: m.ID, Provider: m.OwnedBy})
	}
	return rows, nil
}

// secretCommand lists the names of Secrets, which Providers and tasks refer to. What they hold is left to kubectl.
func secretCommand(api *server, term *terminal) *cobra.Command {
	top := &cobra.Command{Use: "secret", Aliases: []string{"secrets"}, Short: "Secrets that Providers, Tools and tasks refer to, by name"}
	cmd := &cobra.Command{Use: "list", Aliases: []string{"ls"}, Short: "List the names of Secrets; their values are not shown", Args: cobra.NoArgs}
	f := addOutput(cmd, asTable, asName)
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		c, namespace, err := api.client()
		if err != nil {
			return err
		}
		obj, err := fetch(cmd.Context(), c.RESTClient().Get().AbsPath("/api/v1/namespaces", namespace, "secrets"), asTable)
		if err != nil {
			return err
		}
		if *f == asTable {
			return term.printAnswer(term.objectPrinter(asTable, false), obj)
		}
		table, ok := obj.(*metav1.Table)
		if !ok {
			return fmt.Errorf("answer of the server: %T", obj)
		}
		for _, r := range table.Rows {
			if err := term.say("secret/%v", r.Cells[0]); err != nil {
				return err
			}
		}
		return nil
	}
	top.AddCommand(cmd)
	return top
}
