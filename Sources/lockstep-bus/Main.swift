import BusBroker
import BusKit
import WireMessages

@main
struct Main {
    static func main() async {
        await ServiceProcess.run(.bus) { BusService($0) }
    }
}
