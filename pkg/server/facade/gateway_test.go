// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package facade

import (
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

const gatewayEventObject = `{"kind":"GatewayEvent","metadata":{"name":"gev-1","namespace":"default","uid":"u"},"spec":{"namespaceUid":"n","gatewayName":"chat","gatewayUid":"g","gatewayGeneration":2,
	"externalEventId":"x1","payloadSHA256":"d","protocolVersion":"platform.gateway.v1","eventType":"text","accountId":"a","contextId":"c","threadId":"t","senderId":"s","senderDisplayName":"Sam",
	"text":"hello","replyTarget":"r","metadata":{"k":"v"},"occurredAt":"2026-01-01T00:00:00.000001Z","receivedAt":"2026-01-01T00:00:00.000002Z","createdAt":"2026-01-01T00:00:01.000003Z"},
	"status":{"state":"TaskCreated","reason":"Answered","stateMessage":"m","bindingName":"b","bindingUid":"bu","bindingGeneration":3,"agentName":"ag","agentUid":"au","sessionName":"gateway-session-1",
	"transcriptOrder":7,"taskName":"gw-1","taskUid":"tu","deliveryId":"gdl-1","providerMessageId":"p","attemptCount":1,"nextAttemptAt":"2026-01-01T00:00:02Z","expiresAt":"2026-01-02T00:00:00Z",
	"leaseHolder":"l","duplicates":4,"updatedAt":"2026-01-01T00:00:03.000000Z","completedAt":"2026-01-01T00:00:04.000000Z"}}`

const gatewayEventRecord = `{"id":"gev-1","namespace":"default","namespaceUid":"n","gatewayUid":"g","gatewayGeneration":2,"gatewayName":"chat","bindingName":"b","sessionName":"gateway-session-1","taskName":"gw-1",` +
	`"state":"TaskCreated","accountId":"a","contextId":"c","threadId":"t","replyTarget":"r","text":"hello","metadata":{"k":"v"},"providerMessageId":"p","attemptCount":1,"nextAttemptAt":"2026-01-01T00:00:02Z",` +
	`"expiresAt":"2026-01-02T00:00:00Z","createdAt":"2026-01-01T00:00:01.000003Z","updatedAt":"2026-01-01T00:00:03.000000Z","bindingUid":"bu","bindingGeneration":3,"agentName":"ag","agentUid":"au",` +
	`"externalEventId":"x1","protocolVersion":"platform.gateway.v1","eventType":"text","stateMessage":"m","senderId":"s","senderDisplayName":"Sam","taskUid":"tu","deliveryId":"gdl-1","transcriptOrder":7,` +
	`"occurredAt":"2026-01-01T00:00:00.000001Z","receivedAt":"2026-01-01T00:00:00.000002Z","completedAt":"2026-01-01T00:00:04.000000Z"}`

const gatewayDeliveryObject = `{"kind":"GatewayDelivery","metadata":{"name":"gdl-1","namespace":"default"},"spec":{"gatewayName":"chat","gatewayUid":"g","idempotencyId":"i","bindingName":"b","eventId":"gev-1",
	"taskName":"gw-1","sessionName":"gateway-session-1","sequence":7,"kind":"final","accountId":"a","contextId":"c","text":"hi","maxAttempts":10,"createdAt":"2026-01-01T00:00:01.000003Z"},
	"status":{"state":"Pending","manualRetryCount":1,"outcomeUnknown":true,"lastError":"no answer"}}`

const gatewayDeliveryRecord = `{"id":"gdl-1","namespace":"default","gatewayUid":"g","gatewayName":"chat","bindingName":"b","sessionName":"gateway-session-1","taskName":"gw-1","state":"Pending","accountId":"a",` +
	`"contextId":"c","text":"hi","attemptCount":0,"createdAt":"2026-01-01T00:00:01.000003Z","updatedAt":"2026-01-01T00:00:01.000003Z","idempotencyId":"i","eventId":"gev-1","kind":"final","maxAttempts":10,` +
	`"manualRetryCount":1,"lastError":"no answer"}`

// TestGatewayRows: filters become a query, records are flat, and classes of gateways are in no namespace.
func TestGatewayRows(t *testing.T) {
	asked := ""
	f, err := New(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			t.Error(err)
		}
		path := strings.TrimPrefix(strings.TrimPrefix(r.URL.Path, "/apis/core.platform.ai/v1alpha1/"), "namespaces/default/")
		asked = strings.TrimSpace(r.Method + " " + path + " " + strings.ReplaceAll(string(body), `"apiVersion":"core.platform.ai/v1alpha1",`, ""))
		w.Header().Set("Content-Type", "application/json")
		answer := map[string]string{
			"gatewayclasses": `{"kind":"GatewayClassList","items":[]}`, "gatewayevents/gev-1": gatewayEventObject, "gatewaydeliveries/gdl-1": gatewayDeliveryObject,
			"gatewaydeliveries/gdl-1/retry": gatewayDeliveryObject, "gateways/chat": `{"kind":"Gateway","metadata":{"name":"chat"}}`, "gatewayclasses/irc": `{"kind":"GatewayClass","metadata":{"name":"irc"}}`, "gatewayrecordqueries": `{"status":{}}`,
		}[path]
		switch {
		case answer == "":
			w.WriteHeader(http.StatusConflict)
			answer = `{"kind":"Status","code":409,"reason":"Conflict","message":"it is Delivered"}`
		case strings.Contains(asked, `"records":"events"`):
			w.WriteHeader(http.StatusCreated)
			answer = `{"kind":"GatewayRecordQuery","status":{"continue":"next","events":[` + gatewayEventObject + `]}}`
		case r.Method == http.MethodPost:
			w.WriteHeader(http.StatusCreated)
		}
		_, _ = io.WriteString(w, answer)
	}), Options{})
	if err != nil {
		t.Fatal(err)
	}
	for _, tc := range []struct {
		method, path  string
		code          int
		asked, answer string
	}{
		{"GET", "gatewayclasses", 200, "GET gatewayclasses", `{"kind":"GatewayClassList","items":[]}`},
		{"GET", "gatewayclasses/irc?namespace=other", 200, "GET gatewayclasses/irc", `{"kind":"GatewayClass","metadata":{"name":"irc"}}`},
		{"GET", "gateways/chat", 200, "GET gateways/chat", `{"kind":"Gateway","metadata":{"name":"chat"}}`},
		{
			"GET", "gateway-events?gateway=chat&binding=b&session=s&task=gw-1&state=Queued,%20Rejected&limit=7&cursor=c&continue=c", 200,
			`POST gatewayrecordqueries {"kind":"GatewayRecordQuery","spec":{"binding":"b","cursor":"c","gateway":"chat","limit":7,"records":"events","session":"s","states":["Queued","Rejected"],"task":"gw-1"}}`,
			`{"items":[` + gatewayEventRecord + `],"metadata":{"continue":"next"}}`,
		},
		{"GET", "gateway-deliveries?event=gev-1&limit=0&cursor=c", 200, `POST gatewayrecordqueries {"kind":"GatewayRecordQuery","spec":{"cursor":"c","event":"gev-1","limit":0,"records":"deliveries"}}`, `{"items":[],"metadata":{}}`},
		{"GET", "gateway-deliveries?limit=99999999999999999999&continue=c", 200, `POST gatewayrecordqueries {"kind":"GatewayRecordQuery","spec":{"cursor":"c","limit":500,"records":"deliveries"}}`, `{"items":[],"metadata":{}}`},
		{"GET", "gateway-events?limit=-1", 400, "", `{"error":{"code":400,"message":"limit: must be a number and at least 0"}}`},
		{"GET", "gateway-events?cursor=c&continue=d", 400, "", `{"error":{"code":400,"message":"cursor: differs from continue, which is another name for it; give one of them"}}`},
		{"GET", "gateway-events?event=gev-1", 400, "", `{"error":{"code":400,"message":"event: is not a parameter of this path; it has: binding, continue, cursor, gateway, limit, namespace, session, state, task"}}`},
		{"GET", "gateway-events/gev-1", 200, "GET gatewayevents/gev-1", gatewayEventRecord},
		{"GET", "gateway-deliveries/gdl-1", 200, "GET gatewaydeliveries/gdl-1", gatewayDeliveryRecord},
		{"POST", "gateway-deliveries/gdl-1/retry", 202, `POST gatewaydeliveries/gdl-1/retry {"kind":"GatewayDelivery"}`, gatewayDeliveryRecord},
		{"POST", "gateway-deliveries/gdl-2/retry", 409, `POST gatewaydeliveries/gdl-2/retry {"kind":"GatewayDelivery"}`, `{"error":{"code":409,"message":"it is Delivered"}}`},
	} {
		asked = ""
		req := httptest.NewRequestWithContext(t.Context(), tc.method, "/api/v1/"+tc.path, nil)
		req.Header.Set("Authorization", "Bearer x")
		w := httptest.NewRecorder()
		f.ServeHTTP(w, req)
		if w.Code != tc.code || asked != tc.asked {
			t.Errorf("%s %s: %d\nasked %s\nwant  %s", tc.method, tc.path, w.Code, asked, tc.asked)
		}
		if d := cmp.Diff(tc.answer, strings.TrimSpace(w.Body.String())); d != "" {
			t.Errorf("%s %s (-want +got): %s", tc.method, tc.path, d)
		}
	}
}
