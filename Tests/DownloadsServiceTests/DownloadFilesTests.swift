import BusKit
import LibC
import PodcastModel
import TestSupport
import Testing

@testable import DownloadsService

/// Tests the names and contents of downloaded files.
struct DownloadFilesTests {
    @Test(arguments: [
        ("A plain title", "A plain title"), ("../../etc/passwd", "-..-etc-passwd"), ("a/b\\c:d", "a-b-c-d"),
        ("tab\there\u{0}\u{1b}[31m", "tabhere[31m"), ("  much   room  ", "much room"), (".hidden", "hidden"),
        ("..", "X"), ("", "X"), ("\u{202E}gpj.exe\u{2066}", "gpj.exe"), ("مقدمة", "مقدمة"), ("end...", "end"),
        ("line\nbreak", "linebreak"), ("zero\u{200B}width", "zerowidth"),
    ])
    func `file names are safe and readable for any contents of a feed`(text: String, expected: String) {
        #expect(DownloadName.component(text, orElse: "X", limit: 200) == expected)
    }

    @Test(arguments: ["a", "ä", "👩‍👩‍👧", "ع"])
    func `a long file name is truncated between characters and keeps the episode ID and the extension`(
        character: String
    ) {
        let long = String(repeating: character, count: 300)
        let path = DownloadName.path(podcast: long, title: long, episode: "e1", type: "audio/mpeg", url: "http://a/b")
        let parts = path.split(separator: "/")
        #expect(parts.count == 2 && parts.allSatisfy { $0.utf8.count <= 200 })
        #expect(path.hasSuffix(" [e1].mp3"))
        #expect(parts[0].allSatisfy { String($0) == character })
    }

    @Test(arguments: [
        ("http://a/b.M4A?x=.mp3", "audio/mpeg", "m4a"), ("http://a/b", "audio/ogg; codecs=opus", "ogg"),
        ("http://a/b.php", "application/x", "audio"), ("http://a/b.exe", "", "audio"),
    ])
    func `the extension is taken from the URL, else from the announced type`(
        url: String, type: String, suffix: String
    ) {
        let path = DownloadName.path(podcast: "P", title: "T", episode: "e1", type: type, url: url)
        #expect(path == "P/T [e1].\(suffix)")
    }

    private func withFolder(_ body: (DownloadFolder, TemporaryFolder) throws -> Void) throws {
        let temporary = try TemporaryFolder()
        try body(DownloadFolder(root: temporary.path + "/downloads"), temporary)
    }

    private func put(_ text: String, in folder: DownloadFolder, as path: String) throws {
        let partial = try folder.openPartial("e1-x", of: "e1", keeping: 0)
        try write(Array(text.utf8), to: partial, in: folder)
        try folder.finish(partial, "e1-x", at: path)
    }

    private func write(
        _ bytes: [UInt8], to partial: borrowing DownloadFolder.Partial, in folder: DownloadFolder
    ) throws {
        let copy = UnsafeMutableRawBufferPointer.allocate(byteCount: bytes.count, alignment: 1)
        defer { copy.deallocate() }
        copy.copyBytes(from: bytes)
        try folder.write(UnsafeRawBufferPointer(copy), to: partial, at: 0)
    }

    @Test func `a file is at its path only when it is complete, its partial file is removed, and it can be deleted`()
        throws
    {
        try withFolder { folder, _ in
            try put("audio", in: folder, as: "P/T [e1].mp3")
            #expect(try folder.files().files == ["P/T [e1].mp3": 5])
            #expect(folder.delete("e1", at: "P/T [e1].mp3") == nil)
            #expect(try folder.files().files.isEmpty)
            #expect(folder.delete("e1", at: "P/T [e1].mp3") == nil)
        }
    }

    @Test func `a partial file is continued from the synchronised bytes, and only for the same version`() throws {
        try withFolder { folder, _ in
            do {
                let partial = try folder.openPartial("e1-x", of: "e1", keeping: 0)
                try write([UInt8](repeating: 1, count: 100), to: partial, in: folder)
            }
            for (name, kept, offset) in [("e1-x", 60, 60), ("e1-x", 500, 60), ("e1-y", 60, 0), ("e1-x", 60, 0)] {
                let taken = try folder.openPartial(name, of: "e1", keeping: UInt64(kept)).offset
                #expect(taken == UInt64(offset))
            }
        }
    }

    @Test func `a file at the path after a crash is accepted if it is the same, and otherwise not changed`()
        throws
    {
        try withFolder { folder, _ in
            try put("whole", in: folder, as: "P/T [e1].mp3")
            try put("whole", in: folder, as: "P/T [e1].mp3")
            #expect(throws: Failure.self) { try put("other", in: folder, as: "P/T [e1].mp3") }
            #expect(try folder.files().files == ["P/T [e1].mp3": 5])
        }
    }

    @Test
    func `a partial file with a second link is started over and the other link isn’t changed`()
        throws
    {
        try withFolder { folder, _ in
            try put("whole", in: folder, as: "P/T [e1].mp3")
            #expect(link(folder.root + "/P/T [e1].mp3", folder.root + "/.partial/e1-x") == 0)
            let partial = try folder.openPartial("e1-x", of: "e1", keeping: 5)
            #expect(partial.offset == 0)
            try write(Array("ha".utf8), to: partial, in: folder)
            #expect(try folder.files().files == ["P/T [e1].mp3": 5])
        }
    }

    @Test func `a planted symbolic link is never followed for writing, reading or deleting`() throws {
        try withFolder { folder, home in
            let outside = home.path + "/outside"
            mkdir(outside, 0o700)
            mkdir(folder.root, 0o700)
            symlink(outside, folder.root + "/P")
            #expect(throws: Failure.self) { try put("audio", in: folder, as: "P/T [e1].mp3") }
            try home.file("outside/T [e1].mp3", "precious".utf8)
            #expect(folder.delete("e1", at: "P/T [e1].mp3") != nil)
            #expect(access(outside + "/T [e1].mp3", F_OK) == 0)
            mkdir(folder.root + "/Q", 0o700)
            symlink(outside + "/T [e1].mp3", folder.root + "/Q/T [e1].mp3")
            #expect(folder.delete("e1", at: "Q/T [e1].mp3") != nil)
            #expect(throws: Failure.self) { try put("audio", in: folder, as: "Q/T [e1].mp3") }
            symlink(outside + "/made", folder.root + "/.partial/e1-z")
            #expect(throws: Failure.self) { _ = try folder.openPartial("e1-z", of: "e9", keeping: 0) }
            #expect(access(outside + "/made", F_OK) != 0)
        }
    }

    @Test func `neither existing files nor files that aren’t named like downloads are changed`() throws {
        try withFolder { folder, home in
            mkdir(folder.root, 0o700)
            mkdir(folder.root + "/P", 0o700)
            try home.file("downloads/P/T [e1].mp3", "mine".utf8)
            let failure = #expect(throws: Failure.self) { try put("audio", in: folder, as: "P/T [e1].mp3") }
            #expect(failure?.message.contains("T [e1].mp3") == true)
            #expect(try folder.files().files == ["P/T [e1].mp3": 4])
            for path in ["P/other.mp3", "../x [e1].mp3", "P/../x [e1].mp3", "T [e1].mp3"] {
                #expect(folder.delete("e1", at: path) != nil)
            }
        }
    }

    @Test func `a file that an earlier process moved to its path without recording it is accepted`()
        throws
    {
        try withFolder { folder, _ in
            try put("audio", in: folder, as: "P/T [e1].mp3")
            try put("audio", in: folder, as: "P/T [e1].mp3")
            #expect(try folder.files().files == ["P/T [e1].mp3": 5])
            #expect(throws: Failure.self) { try put("radio", in: folder, as: "P/T [e1].mp3") }
        }
    }

    @Test func `an obstructing file is found before anything is fetched, and the failure isn’t retried`() throws {
        try withFolder { folder, home in
            #expect(try folder.isFree("P/T [e1].mp3", for: 5))
            mkdir(folder.root + "/P", 0o700)
            #expect(try folder.isFree("P/T [e1].mp3", for: 5))
            try home.file("downloads/P/T [e1].mp3", "other".utf8)
            // A file of this size may be the same.
            #expect(try !folder.isFree("P/T [e1].mp3", for: 5))
            #expect(try !folder.isFree("P/T [e1].mp3", for: 0))
            symlink(folder.root + "/P/T [e1].mp3", folder.root + "/P/T [e2].mp3")
            for (path, size) in [("P/T [e1].mp3", 6), ("P/T [e1].mp3", UInt64.max), ("P/T [e2].mp3", 5)] {
                let failure = #expect(throws: Failure.self) { _ = try folder.isFree(path, for: size) }
                #expect(failure?.retry == false && failure?.message.contains("\(folder.root)/\(path)") == true)
            }
            let failure = #expect(throws: Failure.self) { try put("audio", in: folder, as: "P/T [e1].mp3") }
            #expect(failure?.retry == false)
        }
    }

    @Test func `a size that no disk can hold is refused`() throws {
        try withFolder { folder, _ in
            let failure = #expect(throws: Failure.self) { try folder.requireSpace(for: .max) }
            #expect(failure?.known == .insufficientStorage)
        }
    }

    @Test func `the failure names a folder that can’t be used`() throws {
        try withFolder { folder, home in
            try home.file("downloads", "a file".utf8)
            let failure = #expect(throws: Failure.self) { _ = try folder.openPartial("e1-x", of: "e1", keeping: 0) }
            #expect(failure?.known == .storageFailed && failure?.message.contains(folder.root) == true)
        }
    }

    @Test func `a file that doesn’t fit on the disk is refused before it is fetched`() throws {
        try withFolder { folder, _ in
            try folder.requireSpace(for: 1)
            let failure = #expect(throws: Failure.self) { try folder.requireSpace(for: 1 << 60) }
            #expect(failure?.known == .insufficientStorage)
        }
    }

    @Test func `a rate limit holds for any number of transfers, and 0 means no limit`() {
        var now = MonotonicTime(nanoseconds: 0)
        var bucket = TokenBucket(rate: 1_000, now: now)
        #expect(bucket.take(1_000, now: now) == .zero)
        #expect(bucket.take(500, now: now) == .milliseconds(500))
        now = now.advanced(by: .milliseconds(1_500))
        #expect(bucket.take(1_000, now: now) == .zero)
        now = now.advanced(by: .seconds(3_600))
        #expect(bucket.take(3_000, now: now) == .seconds(2))
        var free = TokenBucket(rate: 0, now: now)
        #expect(free.take(1 << 30, now: now) == .zero)
    }

    @Test(arguments: [("bytes 5-9/10", 5, 10), ("bytes 5-9/*", 5, 0), ("bytes */10", -1, -1), ("5-9/10", -1, -1)])
    func `a content range is parsed, and anything else is refused`(text: String, first: Int, total: Int) {
        let range = ContentRange(text)
        #expect(range.map { Int($0.first) } ?? -1 == first && range.map { Int($0.total) } ?? -1 == total)
    }
}
