package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
)

// python is a virtual environment with the pinned peers, made on first use.
func python(ctx context.Context) (string, error) {
	venv := filepath.Join(cacheDir, "venv")
	bin := filepath.Join(venv, "bin", "python")
	stamp := filepath.Join(venv, "ready")
	pins, err := os.ReadFile("bench/peers/requirements.txt")
	if err != nil {
		return "", err
	}
	if have, err := os.ReadFile(stamp); err == nil && bytes.Equal(have, pins) {
		return bin, nil
	}
	for _, args := range [][]string{
		{"python3", "-m", "venv", venv},
		{bin, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "-r", "bench/peers/requirements.txt"},
	} {
		cmd := exec.CommandContext(ctx, args[0], args[1:]...)
		cmd.Stderr = os.Stderr
		if err := cmd.Run(); err != nil {
			return "", fmt.Errorf("set up the peers: %w", err)
		}
	}
	return bin, os.WriteFile(stamp, pins, 0o644)
}

// peer is a running peer process that answers one JSON line for every JSON line.
type peer struct {
	cmd *exec.Cmd
	in  *json.Encoder
	out *bufio.Scanner
}

// answer is what a peer says of a query.
type answer struct {
	Version string    `json:"version"`
	Seconds []float64 `json:"seconds"`
	Rows    int       `json:"rows"`
	First   []string  `json:"first"`
	Digest  string    `json:"digest"`
}

func startPeer(ctx context.Context, script string) (*peer, error) {
	bin, err := python(ctx)
	if err != nil {
		return nil, err
	}
	cmd := exec.CommandContext(ctx, bin, script)
	cmd.Stderr = os.Stderr
	in, err := cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	scanner := bufio.NewScanner(out)
	scanner.Buffer(nil, 64<<20)
	return &peer{cmd: cmd, in: json.NewEncoder(in), out: scanner}, cmd.Start()
}

func (p *peer) ask(command map[string]any) (a answer, err error) {
	if err := p.in.Encode(command); err != nil {
		return a, err
	}
	if !p.out.Scan() {
		return a, fmt.Errorf("the peer ended: %w", p.out.Err())
	}
	return a, json.Unmarshal(p.out.Bytes(), &a)
}

func (p *peer) stop() {
	_ = p.cmd.Process.Kill()
	_ = p.cmd.Wait()
}
