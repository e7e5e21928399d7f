// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package standalone

import (
	"cmp"
	"fmt"
	"io"
	"net"
	"net/url"
	"time"

	"github.com/platform-ai/platform/pkg/console"
	"github.com/platform-ai/platform/pkg/version"
)

// announce reports, in one write, that the server is ready, where things are and what to type next.
func announce(w io.Writer, i Info, took time.Duration) error {
	reach := "from this machine only"
	if u, err := url.Parse(i.URL); err == nil {
		if ip := net.ParseIP(u.Hostname()); ip != nil && !ip.IsLoopback() {
			reach = "from the network"
		}
	}
	plain := ""
	if i.RESTURL != "" {
		plain = fmt.Sprintf("\n  REST        %s/api/v1", i.RESTURL)
	}
	if i.Console {
		plain += "\n  Console     " + i.consoleURL() + "  (with a token; platform console needs none)"
	}
	_, err := fmt.Fprintf(w, `platform-standalone %s is ready after %.2f s

  API         %s  (%s)%s
  Kubeconfig  %s
  Data        %s

In another shell:

  export KUBECONFIG=%s
  kubectl api-resources --api-group=core.platform.ai
  kubectl explain task.spec
  kubectl get tasks
  kubectl get executionevents --watch

Stop with Ctrl-C.
`, version.Version(), took.Seconds(), i.URL, reach, plain, i.Kubeconfig, i.DataDir, i.Kubeconfig)
	return err
}

// consoleURL returns the address of the web console.
func (i Info) consoleURL() string { return cmp.Or(i.RESTURL, i.URL) + console.Path }
