import BusBroker
import ProcessKit

@main
struct Main {
    static func main() async {
        await ServiceProcess.run(BrokerService.name) { BrokerService($0) }
    }
}
