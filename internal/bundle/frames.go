package bundle

import (
	"github.com/skomerdb/skomer/internal/bytescan"
	"github.com/skomerdb/skomer/internal/fault"
	"github.com/skomerdb/skomer/internal/lineage"
)

// frames finds the records of a lineage blob without its directory: how a bundle whose roots are damaged still tells what
// it was made from. off is where the blob begins in the file. Each record is
// verified; with an error come those before the damage.
func frames(key string, blob []byte, off int64) ([]lineage.Place, error) {
	r := bytescan.NewReader("lineage blob of "+key, blob)
	if string(r.Bytes(len(lineageMagic))) != lineageMagic {
		r.Fail("no lineage blob")
	}
	if v := r.U8(); r.Err() == nil && v != formatOne {
		return nil, fault.New(fault.Unsupported, key, "lineage blob of version %d", v).WithFix("upgrade skomer")
	}
	r.Bytes(magicHeader - len(lineageMagic) - 1)
	var out []lineage.Place
	for r.Left() > 0 {
		n, crc := r.U32(), r.U32()
		p := lineage.Place{Off: off + int64(r.Offset()), Len: int64(n), CRC: crc}
		raw := r.Bytes(int(n))
		if r.Err() == nil && bytescan.CRC32C(raw) != crc {
			r.Fail("record %d does not have its checksum", len(out))
		}
		if r.Err() == nil {
			out = append(out, p)
		}
	}
	return out, r.Err()
}
