package wave

// Clear forgets everything.
func (k *Kept) Clear() {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.order.Init()
	clear(k.byKey)
	k.used = 0
}

// Clear forgets everything.
func (k *Runs) Clear() {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.order.Init()
	clear(k.byKey)
	k.used = 0
}
