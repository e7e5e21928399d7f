// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package external

import (
	"os"
	"testing"
	"time"
)

func TestMain(m *testing.M) {
	fetchTimeout = time.Minute // a busy machine is not a slow issuer
	os.Exit(m.Run())
}
