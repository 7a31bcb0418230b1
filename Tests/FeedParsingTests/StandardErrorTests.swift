import Foundation
import PodcastModel
import TestSupport
import Testing

@testable import FeedParsing

@Suite struct StandardErrorTests {
    private static let feed =
        "<?xml version=\"1.0\" encoding=\"UTF-32\"?><rss><channel><title>Wäves</title></channel></rss>"

    @Test(arguments: [
        String.Encoding.utf32, .utf32LittleEndian, .utf32BigEndian, .utf16, .utf16LittleEndian, .utf16BigEndian, .utf8,
    ])
    func `a feed in any encoding leaves standard error alone`(encoding: String.Encoding) throws {
        let bytes = try #require(Self.feed.data(using: encoding))
        let damaged = bytes.prefix(bytes.count / 2) + [0xd8, 0x00, 0xff] + bytes.suffix(9)
        let folder = try TemporaryFolder()
        let path = folder.path + "/stderr"
        fflush(nil)
        let saved = dup(STDERR_FILENO)
        let file = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0o600)
        dup2(file, STDERR_FILENO)
        for input in [Data(bytes), Data(damaged), Data([0, 0, 0, 0x3c]) + bytes] {
            _ = try? FeedParser.parse(input)
        }
        fflush(nil)
        dup2(saved, STDERR_FILENO)
        close(saved)
        close(file)
        let printed = try String(contentsOfFile: path, encoding: .utf8)
        #expect(!printed.contains("error"), "libxml2 printed: \(printed)")
    }
}
