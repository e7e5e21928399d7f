// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package executor

import "encoding/json"

// RemoteEnv returns the value of runspec.EnvRemote of a run.
func RemoteEnv(run Run) string {
	if run.Remote == nil {
		return ""
	}
	text, _ := json.Marshal(run.Remote) //nolint:errchkjson // it consists of strings and numbers alone
	return string(text)
}
