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

/// A server reads what this library's client has written, and refuses what is cut off or longer.
#[test]
fn requests_are_read_as_they_were_written() {
    let change = AttributeChange {
        mode: Some(0o600),
        user: Some(7),
        group: None,
        size: Some(1 << 40),
        accessed: Some(SetTime::Now),
        modified: Some(SetTime::To(3, 4)),
        changed: true,
    };
    let (owner, device, change_space) = ((1, 2), (8, 17), SpaceChange::Punch);
    let calls = [
        Call::Version { size: 8192 },
        Call::Attach { fid: 1, user: 2, name: b"dir" },
        Call::Walk { fid: 1, new: 2, names: &[b"usr", b"", b"x"] },
        Call::Open { fid: 1, flags: 2 },
        Call::Create { fid: 1, name: b"a", flags: 2, mode: 3, group: 4 },
        Call::Symlink { directory: 1, name: b"a", target: b"b", group: 3 },
        Call::Mknod { directory: 1, name: b"a", mode: 3, device, group: 4 },
        Call::Mkdir { directory: 1, name: b"a", mode: 3, group: 4 },
        Call::Link { directory: 1, fid: 2, name: b"a" },
        Call::RenameAt { from: 1, old: b"a", to: 2, new: b"bb" },
        Call::UnlinkAt { fid: 1, name: b"a", directory: true },
        Call::ReadLink { fid: 1 },
        Call::GetAttributes { fid: 1 },
        Call::SetAttributes { fid: 1, change },
        Call::ReadDirectory { fid: 1, offset: 1 << 33, count: 3 },
        Call::Read { fid: 1, offset: 1 << 33, count: 3 },
        Call::Write { fid: 1, offset: 1 << 33, data: b"abc" },
        Call::Synchronize { fid: 1, data_only: true },
        Call::Statfs { fid: 1 },
        Call::XattrWalk { fid: 1, new: 2, name: b"user.a" },
        Call::XattrCreate { fid: 1, name: b"user.a", size: 3, flags: 4 },
        Call::Clunk { fid: 1 },
        Call::Mount { fid: 1, read_only: true, resume: false, time: 1 << 60 },
        Call::Mount { fid: 1, read_only: false, resume: true, time: 0 },
        Call::Resume { step: Resume::Reserve { place: 1 << 40, length: 4096 } },
        Call::Resume { step: Resume::Name { fid: 7, inode: 12 } },
        Call::Resume { step: Resume::Choose { inode: 1 << 33 } },
        Call::Resume { step: Resume::Time { time: 1 << 60 } },
        Call::Resume { step: Resume::Place { fid: 7, offset: 8192, length: 4096, place: 1 << 40 } },
        Call::Resume { step: Resume::End },
        Call::Unmount,
        Call::Remount { read_only: true },
        Call::Find { fid: 1, new: 2, name: b"a" },
        Call::Make { fid: 1, new: 2, name: b"a", mode: 3, owner, device, target: b"t" },
        Call::Exchange { from: 1, old: b"a", to: 2, new: b"bb" },
        Call::Allocate { fid: 1, offset: 2, length: 3, change: change_space },
        Call::Map { fid: 1, offset: 2, length: 3 },
        Call::Place { fid: 1, offset: 2, length: 3 },
        Call::Written { fid: 1, offset: 2, length: 3, size: 4 },
    ];
    for call in calls {
        let message = call.encode();
        let mut names: [&[u8]; WALK_MAXIMUM] = Default::default();
        let (_, read) = Call::decode(&message, &mut names).unwrap();
        assert_eq!(format!("{read:?}"), format!("{call:?}"));
        for end in 0..message.len() {
            assert!(Call::decode(&message[..end], &mut [&[]; WALK_MAXIMUM]).is_err(), "{call:?}");
        }
        let mut longer = message.clone();
        longer.push(0);
        let size = longer.len() as u32;
        longer[..4].copy_from_slice(&size.to_le_bytes());
        assert!(Call::decode(&longer, &mut [&[]; WALK_MAXIMUM]).is_err(), "{call:?}");
    }
}

#[test]
fn replies_are_read_as_a_server_has_written_them() {
    let file = Qid { kind: 0x80, version: 1, path: 2 };
    let body = |answer: Answer<'_>| answer.encode(kind::STATFS, 5);
    let status =
        FileSystemStatus { block_size: 4096, blocks: [3, 2, 1], files: [5, 4], ..Default::default() };
    assert_eq!(reply(kind::STATFS, &body(Answer::Status(status))).unwrap().status(), Ok(status));
    let time = Time { seconds: 8, nanoseconds: 9 };
    let attributes = Attributes { qid: file, mode: 0o100644, size: 77, modified: time, ..Default::default() };
    let message = body(Answer::Attributes(attributes));
    assert_eq!(reply(kind::STATFS, &message).unwrap().attributes(), Ok(attributes));
    let message = body(Answer::Walked(&[file, file]));
    assert_eq!(reply(kind::STATFS, &message).unwrap().walked(2), Ok(Some(file)));
    assert_eq!(reply(kind::STATFS, &body(Answer::Error(28))), Err(Failure::Server(28)));
    let message = body(Answer::NotMounted(22, b"bigalloc"));
    assert_eq!(reply(kind::STATFS, &message).unwrap().mounted(), Ok(Err((22, &b"bigalloc"[..]))));
    for mapped in [Mapped::Hole { length: 1 }, Mapped::Data { length: 2, place: 3 }] {
        let message = body(Answer::Mapped(mapped));
        assert_eq!(reply(kind::STATFS, &message).unwrap().mapped(), Ok(mapped));
    }
    let mut list = EntryList::new(60);
    let entry = Entry { qid: file, next: 9, file_type: 4, name: b"abc" };
    assert!(list.push(&entry) && !list.push(&Entry { name: &[b'x'; 40], ..entry }));
    let message = Answer::Data(list.bytes()).encode(kind::READDIR, 0);
    let entries = reply(kind::READDIR, &message).unwrap().entries().unwrap();
    assert_eq!(entries.collect::<Vec<_>>(), [entry]);
}
