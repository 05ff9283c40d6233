use super::*;

fn message(kind: u8, content: impl FnOnce(&mut Writer)) -> Vec<u8> {
    let mut writer = Writer::new(kind, 7);
    content(&mut writer);
    writer.finish()
}

#[test]
fn requests_are_as_the_protocol_has_them() {
    let version = Call::Version { size: 8192 }.encode();
    assert_eq!(version, b"\x15\0\0\0\x64\xff\xff\x00\x20\0\0\x08\x009P2000.L");
    let walk = Call::Walk { fid: 1, new: 2, names: &[b"usr", b"x"] }.encode();
    assert_eq!(walk, b"\x19\0\0\0\x6e\0\0\x01\0\0\0\x02\0\0\0\x02\0\x03\0usr\x01\0x");
    let write = Call::Write { fid: 3, offset: 1 << 32, data: b"abc" }.encode();
    assert_eq!(write, b"\x1a\0\0\0\x76\0\0\x03\0\0\0\0\0\0\0\x01\0\0\0\x03\0\0\0abc");
    assert!(write.len() - 3 <= DATA_OVERHEAD);
    let remove = Call::UnlinkAt { fid: 1, name: b"d", directory: true }.encode();
    assert_eq!(remove, b"\x12\0\0\0\x4c\0\0\x01\0\0\0\x01\0d\0\x02\0\0");
    let change = AttributeChange { size: Some(5), modified: Some(SetTime::Now), ..Default::default() };
    let change = Call::SetAttributes { fid: 1, change }.encode();
    assert_eq!((change.len(), &change[11..15]), (67, &[0x28, 0, 0, 0][..]));
    let change =
        AttributeChange { mode: Some(0o644), accessed: Some(SetTime::To(9, 8)), ..Default::default() };
    let change = Call::SetAttributes { fid: 1, change }.encode();
    assert_eq!((&change[11..15], change[35], change[43]), (&[0x91, 0, 0, 0][..], 9, 8));
}

#[test]
fn replies_are_read_or_refused() {
    let error = message(kind::ERROR, |to| to.word(13));
    assert_eq!(reply(kind::WALK, &error), Err(Failure::Server(13)));
    let read = message(kind::READ + 1, |to| {
        to.word(3);
        to.raw(b"abc");
    });
    assert_eq!(reply(kind::READ, &read).unwrap().data(3), Ok(&b"abc"[..]));
    assert_eq!(reply(kind::READ, &read).unwrap().data(2), Err(Failure::Malformed), "more than asked for");
    assert_eq!(reply(kind::WRITE, &read), Err(Failure::Malformed), "a reply to another request");
    let wrote = message(kind::WRITE + 1, |to| to.word(4));
    assert_eq!(reply(kind::WRITE, &wrote).unwrap().count(3), Err(Failure::Malformed));
    let qid = |to: &mut Writer, path| {
        to.byte(0x80);
        to.word(1);
        to.long(path);
    };
    let walked = message(kind::WALK + 1, |to| {
        to.half(2);
        qid(to, 5);
        qid(to, 6);
    });
    let walked = reply(kind::WALK, &walked).unwrap();
    assert_eq!(walked.walked(2).unwrap().unwrap().path, 6);
    assert_eq!(walked.walked(3), Err(Failure::Server(2)), "part of the names");
    assert_eq!(walked.walked(1), Err(Failure::Malformed), "more names than there are");
    let entries = message(kind::READDIR + 1, |to| {
        to.word(50);
        for (name, next) in [(b"a", 1), (b"b", 2)] {
            qid(to, next);
            to.long(next);
            to.byte(8);
            to.string(name);
        }
    });
    let entries = reply(kind::READDIR, &entries).unwrap().entries().unwrap();
    let names: Vec<_> = entries.map(|entry| (entry.name, entry.next, entry.qid.path)).collect();
    assert_eq!(names, [(&b"a"[..], 1, 1), (b"b", 2, 2)]);
}

/// Reads a reply in every way.
fn read_all(message: &[u8]) {
    for request in 0..=254 {
        let Ok(body) = reply(request, message) else { continue };
        let _ = (body.version(), body.qid(), body.walked(3), body.attributes(), body.data(1 << 20));
        let _ = (body.count(10), body.size(), body.text(), body.status());
        if let Ok(entries) = body.entries() {
            assert!(entries.count() <= message.len() / 24);
        }
    }
}

/// Whatever a server sends is read or refused: random messages, those with a right header, and
/// every truncation and one-byte change of right ones.
#[test]
fn a_server_that_lies_does_no_harm() {
    let mut seed = 1_u64;
    let mut random = move || {
        seed ^= seed << 13;
        seed ^= seed >> 7;
        seed ^= seed << 17;
        seed
    };
    for round in 0..20_000 {
        let length = random() % 200;
        let mut bytes: Vec<u8> = (0..length).map(|_| random() as u8).collect();
        if round % 2 == 0 && bytes.len() >= 5 {
            bytes[..4].copy_from_slice(&(length as u32).to_le_bytes());
            bytes[4] = [9, 13, 25, 41, 111, 117][round / 2 % 6];
        }
        read_all(&bytes);
    }
    let right = message(kind::READDIR + 1, |to| {
        to.word(27);
        to.raw(&[1; 22]);
        to.string(b"abc");
    });
    for at in 0..right.len() {
        read_all(&right[..at]);
        for value in [0, 1, 0x7f, 0xff] {
            let mut changed = right.clone();
            changed[at] = value;
            read_all(&changed);
        }
    }
}
