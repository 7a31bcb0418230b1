import PodcastModel
import SwiftProtobuf
import WireMessages
import ZeroMQ

/// The payloads that the bus writes itself. It reads none.
enum BrokerPayload {
    static func status(of service: ServiceRegistry.Service) -> Frame {
        var status = WireServiceStatus()
        status.name = service.name.text
        status.generation = service.generation
        status.state =
            switch service.state {
            case .starting: .starting
            case .ready: .ready
            case .down: .down
            }
        return encode(status)
    }

    static func failure(_ failure: Failure) -> Frame {
        encode(WireFailure(failure))
    }

    /// Encoding can fail only for required fields and unknown types, which these messages do not have.
    private static func encode(_ message: some SwiftProtobuf.Message) -> Frame {
        let bytes: [UInt8] = (try? message.serializedBytes()) ?? []
        return Frame(bytes)
    }
}
