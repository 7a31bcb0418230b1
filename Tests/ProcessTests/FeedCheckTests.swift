import Foundation
import Testing

/// `feed check` reads whatever a server or a disk holds.
@Suite(.timeLimit(.minutes(2)))
struct FeedCheckTests {
    private static let feed =
        "<?xml version=\"1.0\" encoding=\"UTF-32\"?><rss><channel><title>Wäves</title></channel></rss>"

    /// libxml2 prints what it cannot convert on the standard error of the whole process, unless it is kept from that: only
    /// a process of its own shows it.
    @Test(arguments: [
        String.Encoding.utf32, .utf32LittleEndian, .utf32BigEndian, .utf16, .utf16LittleEndian, .utf16BigEndian, .utf8,
    ])
    func `a feed in any encoding prints nothing but the command’s sentences`(encoding: String.Encoding) async throws {
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
}
