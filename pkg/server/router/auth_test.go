// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package router

import (
	"encoding/base64"
	"net/http"
	"strings"
	"testing"
)

// A transaction token is refused wherever it stands, before the API server is asked, which may know its issuer.
func TestTransactionTokens(t *testing.T) {
	token := func(typ string) string {
		part := base64.RawURLEncoding.EncodeToString
		return part([]byte(`{"alg":"RS256","typ":"`+typ+`"}`)) + "." + part([]byte(`{"sub":"ann"}`)) + ".c2ln"
	}
	for typ, accepted := range map[string]bool{"JWT": true, "txntoken+jwt": false, "application/TxnToken+jwt": false} {
		for _, h := range []http.Header{{"Authorization": {"Bearer " + token(typ)}}, {"X-Api-Key": {token(typ)}}} {
			_, err := credential(h, messages)
			if (err == nil) != accepted || err != nil && !strings.Contains(err.Error(), "transaction tokens are not accepted") {
				t.Errorf("%s, %v: %v", typ, h, err)
			}
		}
	}
}
