// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package executor

import (
	"maps"
	"strings"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
	"github.com/platform-ai/platform/pkg/runspec"
	"github.com/platform-ai/platform/pkg/tokenexchange"
)

// TransactionEnv returns the variables of a run that describe the transaction of its task; nil if there is none. For a run
// of an agent with a transaction token they include how tokens for children are asked for. File is where the run finds its token;
// empty if it gets the token otherwise.
func TransactionEnv(run Run, exchange tokenexchange.Options, file string) map[string]string {
	t := run.Task.Spec.Transaction
	if t == nil {
		return nil
	}
	env := map[string]string{
		runspec.EnvTransactionID: t.ID, runspec.EnvTransactionProfile: t.Profile, runspec.EnvTransactionIssuer: t.Issuer,
		runspec.EnvTransactionSubject: t.Subject, runspec.EnvTransactionWorkload: t.RequestingWorkload, runspec.EnvTransactionScope: t.Scope,
		runspec.EnvTransactionScopes: strings.Join(t.Scopes, ","), runspec.EnvTransactionContextDigest: t.ContextDigest,
		runspec.EnvTransactionRequesterContextDigest: t.RequesterContextDigest,
	}
	if run.TransactionSecret == "" && run.Credentials.TransactionToken == "" {
		return env
	}
	if file != "" {
		env[runspec.EnvTransactionTokenFile], env[runspec.EnvSubjectTokenFile] = file, file
	}
	if exchange.Endpoint != "" && run.Task.Spec.Type != v1alpha1.TaskTypeContainer { // which delegates nothing
		maps.Copy(env, exchange.Env())
	}
	return env
}
