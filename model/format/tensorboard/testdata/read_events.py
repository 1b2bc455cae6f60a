"""An independent reader of event files without dependencies. Prints one JSON line per event, with values as the hex of their float32 bits."""
import json, struct, sys

TABLE = []
for n in range(256):
    for _ in range(8):
        n = n >> 1 ^ (0x82F63B78 if n & 1 else 0)
    TABLE.append(n)


def masked(data):
    crc = 0xFFFFFFFF
    for byte in data:
        crc = TABLE[(crc ^ byte) & 255] ^ crc >> 8
    crc ^= 0xFFFFFFFF
    return ((crc >> 15 | crc << 17) + 0xA282EAD8) & 0xFFFFFFFF


def varint(b, i):
    shift = value = 0
    while True:
        value |= (b[i] & 127) << shift
        i, shift = i + 1, shift + 7
        if b[i - 1] < 128:
            return value, i


def fields(b):
    out, i = {}, 0
    while i < len(b):
        tag, i = varint(b, i)
        kind = tag & 7
        if kind == 0:
            value, i = varint(b, i)
        elif kind == 1:
            value, i = b[i : i + 8], i + 8
        elif kind == 5:
            value, i = b[i : i + 4], i + 4
        else:
            size, i = varint(b, i)
            value, i = b[i : i + size], i + size
        out.setdefault(tag >> 3, []).append(value)
    assert i == len(b)
    return out


raw, at = open(sys.argv[1], "rb").read(), 0
while at < len(raw):
    size, check = struct.unpack_from("<QI", raw, at)
    assert check == masked(raw[at : at + 8]), at
    content = raw[at + 12 : at + 12 + size]
    (check,) = struct.unpack_from("<I", raw, at + 12 + size)
    assert check == masked(content), at
    at += size + 16
    e = fields(content)
    line = {"time": struct.unpack("<d", e[1][0])[0], "step": e.get(2, [0])[0]}
    if 3 in e:
        line["version"] = e[3][0].decode()
    if 7 in e:
        line["restart"] = fields(e[7][0])[1][0]
    for summary in e.get(5, []):
        for value in fields(summary).get(1, []):
            v = fields(value)
            tag = v[1][0].decode()
            if 2 in v:
                line.setdefault("scalars", {})[tag] = v[2][0][::-1].hex()
            if 4 in v:
                image = fields(v[4][0])
                line["image"] = [tag, image[1][0], image[2][0], image[4][0].hex()]
            if 9 in v:
                plugin = fields(fields(v[9][0])[1][0])
                assert plugin[1][0] == b"hparams"
                line["plugin"] = tag
                start = fields(plugin[2][0]).get(3)
                for entry in fields(start[0]).get(1, []) if start else []:
                    entry = fields(entry)
                    value = fields(entry[2][0])
                    name = entry[1][0].decode()
                    line.setdefault("hparams", {})[name] = struct.unpack("<d", value[2][0])[0] if 2 in value else value[3][0].decode() if 3 in value else bool(value[4][0])
    print(json.dumps(line))
