import FoundationEssentials
import Logging
import Testing

@testable import ProcessKit

struct JSONLogHandlerTests {
    private struct Line: Decodable {
        var message: String
        var level: String
        var service: String
        var why: String?
    }

    @Test(arguments: [
        "short", String(repeating: "long ", count: 5_000), String(repeating: "\u{1}", count: 5_000),
        String(repeating: "é\u{301}\u{301}", count: 3_000), String(repeating: "👩‍👩‍👧", count: 2_000), "",
    ])
    func `a line is one JSON object that a pipe accepts at once`(_ message: String) throws {
        let handler = JSONLogHandler(service: "queue", level: .info)
        let text = handler.line(.warning, message, ["why": "because"])
        #expect(text.utf8.count <= JSONLogHandler.lineLimit && text.hasSuffix("}\n"))
        let line = try JSONDecoder().decode(Line.self, from: Data(text.utf8))
        #expect(line.level == "warning" && line.service == "queue")
        if message.utf8.count < 100 {
            #expect(line.message == message && line.why == "because")
        } else {
            #expect(line.message.hasSuffix("…") && line.message.unicodeScalars.count > 300)
        }
    }
}
