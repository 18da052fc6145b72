package avro

import "encoding/binary"

const (
	fastIn  = 16          // bytes that fast may read in a round
	fastOut = 3 + 258 + 8 // and bytes that it may write
)

// fast decodes symbols of a block while input and output have room for whole rounds, and up to limit bytes; done at the block's end.
// A round is up to three literals and perhaps a length with its distance.
func (z *inflater) fast(limit int64) (done bool, err error) {
	in, at, hold, held := z.in, z.at, z.hold, z.held
	lit, dist := &z.lit, &z.dist
	o, out := len(z.out), z.out[:cap(z.out)]
	lastOut := int(min(int64(len(out)-fastOut), limit))
	for at <= len(in)-fastIn && o <= lastOut {
		hold |= binary.LittleEndian.Uint64(in[at:]) << (held & 63) // at least 56 bits from now on
		at += int(63-held) >> 3
		held |= 56
		e := lit[hold&(1<<litBits-1)]
		if e&literal != 0 {
			out[o] = byte(e >> 16)
			o++
			hold >>= e.taken()
			held -= e.taken()
			e = lit[hold&(1<<litBits-1)]
			if e&literal != 0 {
				out[o] = byte(e >> 16)
				o++
				hold >>= e.taken()
				held -= e.taken()
				e = lit[hold&(1<<litBits-1)]
				if e&literal != 0 {
					out[o] = byte(e >> 16)
					o++
					hold >>= e.taken()
					held -= e.taken()
					e = lit[hold&(1<<litBits-1)]
				}
			}
		}
		// 23 bits are left, and a length takes 20.
		if e&special != 0 && e.taken() == 0 {
			e = lit[e.least()+int(hold>>litBits&(1<<e.code()-1))]
		}
		if e.taken() == 0 {
			return false, errInflate
		}
		n := e.value(hold)
		hold >>= e.taken()
		held -= e.taken()
		if e&(literal|special) != 0 {
			if e&special != 0 {
				done = true
				break
			}
			out[o] = byte(e >> 16)
			o++
			continue
		}
		hold |= binary.LittleEndian.Uint64(in[at:]) << (held & 63)
		at += int(63-held) >> 3
		held |= 56
		e = dist.find(hold)
		back := e.value(hold)
		hold >>= e.taken()
		held -= e.taken()
		from := o - back
		if from < 0 || back == 0 {
			return false, errInflate
		}
		end := o + n
		if back >= 8 { // in words, the last of which may write past the end
			for o < end {
				binary.LittleEndian.PutUint64(out[o:], binary.LittleEndian.Uint64(out[from:]))
				o += 8
				from += 8
			}
		} else {
			for o < end {
				out[o] = out[from]
				o++
				from++
			}
		}
		o = end
	}
	z.at, z.hold, z.held, z.out = at, hold, held, out[:o]
	return done, nil
}
