// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package serverbench

import (
	"bufio"
	"context"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"
)

// recorded checks that the server knows the usage of each request that it was measured with, so that no figure is one of a
// server that records gaps. The last ends are counted after their clients have read the answers.
func recorded(ctx context.Context, c *http.Client, base string) error {
	const each, patience = 3 + 2, 5 * time.Second // tokens of each answer of the vendor
	names := []string{"platform_compat_model_requests_total", "platform_compat_model_requests_unreported_total", "platform_compat_model_tokens_total"}
	for began := time.Now(); ; time.Sleep(50 * time.Millisecond) {
		sums, err := sumsOf(ctx, c, base, names)
		if err != nil {
			return err
		}
		if n, gaps, tokens := sums[0], sums[1], sums[2]; gaps == 0 && tokens == each*n {
			return nil
		} else if time.Since(began) > patience {
			return fmt.Errorf("of %v requests, %v have no usage, and all have %v tokens", n, gaps, tokens)
		}
	}
}

// sumsOf returns the sums of metrics over all labels.
func sumsOf(ctx context.Context, c *http.Client, base string, names []string) ([]float64, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, base+"/metrics", http.NoBody)
	if err != nil {
		return nil, err
	}
	resp, err := c.Do(req)
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("metrics: %s", resp.Status)
	}
	out := make([]float64, len(names))
	in := bufio.NewScanner(resp.Body)
	for in.Scan() {
		series, value, _ := strings.Cut(in.Text(), "} ")
		for i, name := range names {
			if !strings.HasPrefix(series, name+"{") {
				continue
			}
			n, err := strconv.ParseFloat(value, 64)
			if err != nil {
				return nil, fmt.Errorf("metric %s: %w", name, err)
			}
			out[i] += n
		}
	}
	return out, in.Err()
}
