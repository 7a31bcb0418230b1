import BusKit
import Foundation
import LockstepClient
import Testing
import WireMessages

/// Tests chapters of a file in commands and in both players.
@Suite(.serialized, .timeLimit(.minutes(5))) struct ChapterPlayerTests {
    /// Runs with a fleet that has loaded ten minutes of silence with these chapters, paused at the start.
    private static func withChapters(
        _ chapters: [(title: String, start: Int)], _ body: @Sendable (ProcessFleet) async throws -> Void
    ) async throws {
        try await ProcessFleet.with { fleet in
            let audio = fleet.root + "/chapters.wav"
            try ChapterAudio.wave(seconds: 600, chapters).write(to: URL(fileURLWithPath: audio))
            let feed = """
                <?xml version="1.0"?><rss version="2.0"><channel><title>A podcast</title><link>http://127.0.0.1/</link>
                <description>x</description><item><title>An episode</title><guid>1</guid>
                <enclosure url="file://\(audio)" type="audio/wav" length="1"/></item></channel></rss>
                """
            let path = fleet.root + "/feed.xml"
            try feed.write(toFile: path, atomically: true, encoding: .utf8)
            try await fleet.succeed("subscribe", path)
            try await fleet.succeed("play", "An episode")
            try await fleet.succeed("pause")
            try await fleet.succeed("seek", "0")
            try await body(fleet)
        }
    }

    private static let three = [(title: "Hello", start: 0), (title: "News", start: 120), (title: "End", start: 480)]

    @Test func `commands seek from chapter to chapter`() async throws {
        try await Self.withChapters(Self.three) { fleet in
            try await fleet.run([
                CommandStep("chapter", 0, "\t\tstart\tlength\tchapter\n1\t*\t0:00\t2:00\tHello\n2\t\t2:00"),
                CommandStep("chapter next", 0, "Chapter 2 of 3, at 2:00 of 10:00: News."),
                CommandStep("chapter 3", 0, "Chapter 3 of 3, at 8:00 of 10:00: End."),
                CommandStep("chapter 3", 0, "No change: paused at 8:00 of 10:00."),
                CommandStep("chapter next", 69, "lockstep: This is the last chapter."),
                CommandStep("chapter 4", 65, "lockstep: There is no chapter 4; this episode has 3 chapters."),
                CommandStep("seek 9:00", 0, "Paused at 9:00"),
                CommandStep("chapter previous", 0, "Chapter 3 of 3, at 8:00"),
                CommandStep("chapter previous", 0, "Chapter 2 of 3, at 2:00"),
                CommandStep("chapter 1", 0, "Chapter 1 of 3, at 0:00"),
                CommandStep("chapter previous", 69, "lockstep: This is the beginning of the first chapter."),
                CommandStep("sleep chapter", 0, "Sleep at the end of the chapter."),
                CommandStep("sleep chapter", 0, "No change: sleep at the end of the chapter."),
            ])
        }
    }

    @Test func `both players show the same chapter and can change it`() async throws {
        try await Self.withChapters(Self.three) { fleet in
            try await TerminalShell.with(fleet, "\"$LOCKSTEP\" mini", columns: 100) { mini in
                try await TerminalShell.with(fleet, "\"$LOCKSTEP\" expanded", columns: 100) { expanded in
                    try await Self.both(mini, expanded, "Hello", "Chapter 1 of 3: Hello")
                    mini.type(">")
                    try await Self.both(mini, expanded, "2:00/10:00", "Chapter 2 of 3: News")
                    expanded.type("c")
                    try await expanded.until(sees: "Chapters (3)  c Up Next")
                    try await expanded.until(sees: ">▶2 News")
                    expanded.arrow("B")
                    try await expanded.until(sees: "> 3 End")
                    expanded.type("\r")
                    try await Self.both(mini, expanded, "8:00/10:00", "Chapter 3 of 3: End")
                    expanded.type("z")
                    try await Self.both(mini, expanded, "☾14:5", "sleep in 14:5")
                    try await fleet.succeed("sleep", "chapter")
                    try await Self.both(mini, expanded, "☾chapter", "sleep at the end of the chapter")
                }
            }
        }
    }

    private static func both(
        _ mini: TerminalShell, _ expanded: TerminalShell, _ first: String, _ second: String
    ) async throws {
        try await mini.until(sees: first)
        try await expanded.until(sees: second)
    }

    @Test func `two hundred chapters are listed and can be selected`() async throws {
        let chapters = (0..<200).map { (title: "Chapter \($0 + 1)", start: $0 * 3) }
        try await Self.withChapters(chapters) { fleet in
            let lines = try await fleet.succeed("chapter").split(separator: "\n")
            #expect(lines.count == 201)
            try await fleet.run([
                CommandStep("chapter 200", 0, "Chapter 200 of 200, at 9:57 of 10:00: Chapter 200."),
                CommandStep("chapter 100", 0, "Chapter 100 of 200, at 4:57 of 10:00: Chapter 100."),
            ])
            try await FleetObserver.with(1, of: fleet) { observers in
                try await observers[0].until("the chapter") { $0.player?.chapter == 100 }
                #expect(observers[0].view.player?.chapters.count == 200)
            }
        }
    }
}

/// Silence with chapters in an ID3 tag within a WAV file.
enum ChapterAudio {
    /// Returns a WAV file of 8 bits, mono, 8 kHz.
    static func wave(seconds: Int, _ chapters: [(title: String, start: Int)]) -> Data {
        let ends = chapters.dropFirst().map(\.start) + [seconds]
        var frames = Data()
        for (index, (chapter, end)) in zip(chapters, ends).enumerated() {
            var body = Data("c\(index)\0".utf8)
            for number in [UInt32(chapter.start * 1_000), UInt32(end * 1_000), .max, .max] { body.append(big: number) }
            body.append(frame("TIT2", Data([3]) + Data(chapter.title.utf8)))
            frames.append(frame("CHAP", body))
        }
        var tag = Data("ID3".utf8) + Data([3, 0, 0])
        // ID3 encodes the size with seven bits per byte.
        tag.append(contentsOf: [21, 14, 7, 0].map { UInt8(truncatingIfNeeded: frames.count >> $0) & 0x7f })
        tag.append(frames)
        if tag.count % 2 == 1 { tag.append(0) }
        let format = Data([1, 0, 1, 0, 0x40, 0x1f, 0, 0, 0x40, 0x1f, 0, 0, 1, 0, 8, 0])
        let samples = Data(repeating: 0x80, count: seconds * 8_000)
        var content = Data("WAVE".utf8)
        for (name, body) in [("fmt ", format), ("ID3 ", tag), ("data", samples)] {
            content.append(contentsOf: name.utf8)
            withUnsafeBytes(of: UInt32(body.count).littleEndian) { content.append(contentsOf: $0) }
            content.append(body)
        }
        var file = Data("RIFF".utf8)
        withUnsafeBytes(of: UInt32(content.count).littleEndian) { file.append(contentsOf: $0) }
        return file + content
    }

    private static func frame(_ name: String, _ body: Data) -> Data {
        var frame = Data(name.utf8)
        frame.append(big: UInt32(body.count))
        return frame + Data([0, 0]) + body
    }
}

extension Data {
    fileprivate mutating func append(big number: UInt32) {
        Swift.withUnsafeBytes(of: number.bigEndian) { append(contentsOf: $0) }
    }
}
