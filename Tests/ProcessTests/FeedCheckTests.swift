import Foundation
import Testing

/// Tests `feed check` with addresses and files.
@Suite(.timeLimit(.minutes(2)))
struct FeedCheckTests {
    private static let feed =
        "<?xml version=\"1.0\" encoding=\"UTF-32\"?><rss><channel><title>Wäves</title></channel></rss>"

    /// By default libxml2 prints conversion errors to the standard error of the whole process, so the
    /// test needs a process of its own.
    @Test(arguments: [
        String.Encoding.utf32, .utf32LittleEndian, .utf32BigEndian, .utf16, .utf16LittleEndian, .utf16BigEndian, .utf8,
    ])
    func `commands print only their own messages for a feed in any encoding`(encoding: String.Encoding) async throws {
        let bytes = try #require(Self.feed.data(using: encoding))
        let damaged = bytes.prefix(bytes.count / 2) + [0xd8, 0x00, 0xff] + bytes.suffix(9)
        try await ProcessFleet.with(isUp: false) { fleet in
            for input in [Data(bytes), Data(damaged), Data([0, 0, 0, 0x3c]) + bytes] {
                let path = fleet.root + "/feed.xml"
                try input.write(to: URL(fileURLWithPath: path))
                let outcome = try await fleet.lockstep(["feed", "check", path])
                let lines = outcome.errors.split(separator: "\n")
                #expect(lines.count == (outcome.status == 0 ? 0 : 1), "\(outcome)")
                #expect(lines.allSatisfy { $0.hasPrefix("lockstep: ") }, "\(outcome)")
            }
        }
    }

    @Test func `feed check prints the same warnings as subscribe and accepts a podcast’s address`() async throws {
        try await ProcessFleet.with { fleet in
            let path = fleet.root + "/feed.xml"
            let items = ["ftp://a.example/1.mp3", "http://a.example/2.mp3"].map {
                "<item><title>\($0)</title><enclosure url=\"\($0)\"/></item>"
            }
            try "<rss><channel><title>Waves</title>\(items.joined())</channel></rss>".write(
                toFile: path, atomically: true, encoding: .utf8)
            let warning = "An episode was left out: its audio has no usable address"
            let checked = try await fleet.succeed("feed", "check", path)
            #expect(checked.contains(warning) && checked.contains("\n1 episode\n"), "\(checked)")
            let subscribed = try await fleet.succeed("subscribe", path)
            #expect(subscribed.contains(warning), "\(subscribed)")
            let address = "file://" + path
            #expect(try await fleet.succeed("set", "--podcast", address, "speed", "1.5").contains("Waves"))
            #expect(try await fleet.succeed("episodes", address).contains("http://a.example/2.mp3"))
            #expect(try await fleet.succeed("unsubscribe", address).contains("Unsubscribed from Waves."))
            let empty = try await fleet.lockstep(["subscribe", ""])
            #expect(
                empty.status == 64 && empty.errors.hasPrefix("lockstep: The argument after “subscribe” is empty."),
                "\(empty)")
            let both = try await fleet.lockstep(["subscribe", "", path])
            #expect(
                both.status == 64 && both.errors.hasPrefix("lockstep: The argument after “subscribe” is empty."),
                "\(both)")
        }
    }
}
